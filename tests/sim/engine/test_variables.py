"""Device variables of several modules: their regions, and the limit of all together."""

from __future__ import annotations

import pytest

from kernel_gym.sim.asm.data import DataObject
from kernel_gym.sim.asm.errors import AsmError
from kernel_gym.sim.engine.variables import DeviceVariables


@pytest.fixture
def data() -> dict[str, DataObject]:
    return {"factor": DataObject(0, bytes(4))}


def test_regions_are_those_of_the_modules_that_have_variables(data):
    variables = DeviceVariables()
    variables.add(b"one", data)
    variables.add(b"empty", {})
    (region,) = variables.regions()
    assert region == variables.region_of(b"one") == (variables[b"one"].addresses["factor"], 256)
    assert variables.region_of(b"empty") == variables.region_of(b"unknown") == (0, 0)
    start, size = region
    assert variables.hold(start, size)
    assert not variables.hold(start + 1, size)


def test_the_limit_counts_the_variables_of_all_modules(data):
    variables = DeviceVariables()
    variables.limit = 300
    variables.add(b"one", data)
    with pytest.raises(AsmError, match="256 bytes of device variables beside 256, expected 300"):
        variables.add(b"two", data)
    assert b"two" not in variables
