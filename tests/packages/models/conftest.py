"""Packages for tests of models, loaded as `kernels` loads them."""

from __future__ import annotations

import pytest

from kernel_gym.packages.models import child

pytest.importorskip("kernels")
pytest.importorskip("transformers")


@pytest.fixture(scope="session")
def load(write, tmp_path_factory):
    """Loads the variant for CPUs of a problem's package."""
    place, made = tmp_path_factory.mktemp("models"), {}

    def loaded(problem):
        if problem not in made:
            folder = write(place / problem, f"torch2triton/{problem}")
            made[problem] = child.load(folder, "cpu")
        return made[problem]

    return loaded
