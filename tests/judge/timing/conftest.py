"""Memory of a GPU on the host."""

import pytest

from tests.judge.timing.on_host import arena_on_host


@pytest.fixture(params=[True, False], ids=["by handle", "through the host"])
def arena(request, monkeypatch, tmp_path):
    """The arena and, in the worker's place, its own memory or a copy of it."""
    with arena_on_host(request.param, monkeypatch, tmp_path) as made:
        yield made
