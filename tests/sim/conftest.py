"""Engines for the simulator's tests."""

from __future__ import annotations

import pytest

from kernel_gym.sim import native
from kernel_gym.sim.engine.engine import Engine


@pytest.fixture(scope="session", params=native.supported_isas())
def any_engine(request: pytest.FixtureRequest) -> Engine:
    """An engine for each instruction set of this processor."""
    return Engine(threads=1, isa=request.param)


@pytest.fixture(scope="session")
def engine() -> Engine:
    """An engine with the best instruction set."""
    return Engine(threads=2)
