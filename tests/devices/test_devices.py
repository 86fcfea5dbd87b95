"""Names of devices."""

import pytest

from kernel_gym.devices import UnknownDevice, describe_devices, device_names, resolve


def test_auto_is_a_device_that_is_usable_here():
    usable = {d.name for d in describe_devices() if d.usable}
    assert resolve("auto") in usable


def test_an_unknown_device_names_near_matches():
    with pytest.raises(UnknownDevice, match="sim:gfx942"):
        resolve("sim:gfx492")


def test_every_listed_name_resolves():
    assert all(resolve(name) for name in device_names())
