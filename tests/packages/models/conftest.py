"""Packages for tests of models, loaded as `kernels` loads them."""

from __future__ import annotations

import pytest

from kernel_gym.packages.models import build, child, trace
from kernel_gym.packages.models.replace import replace

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


def replaced_in(load, problem, config, change=None):
    """Returns the model, its inputs and what was found for a problem's package.

    Args:
        load: The fixture.
        problem: The problem.
        config: The configuration of the model.
        change: What changes the model before it is traced.
    """
    package = load(problem)
    dtype = child._dtype(package)
    model = build.build(config, dtype, "eager" if problem == "softmax" else "sdpa")
    if change is not None:
        change(model)
    inputs = build.inputs_of(model, 2, 8)
    if problem == "cross_entropy":
        inputs["labels"] = inputs["input_ids"]
    if functions := package.operation.functions:
        trace.extend_functions(model, functions)
    traced = trace.trace(model, inputs)
    return inputs, replace(model, traced, problem, package.kernel, package.folder, package.backend)
