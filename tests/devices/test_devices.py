"""Names of devices and their descriptions."""

from types import SimpleNamespace

import pytest
import torch

from kernel_gym.devices import UnknownDevice, device_names, device_statuses, resolve
from kernel_gym.devices.gpu import vendors


def test_auto_is_a_device_that_is_usable_here():
    usable = {d.name for d in device_statuses() if d.usable}
    assert resolve("auto") in usable


def test_an_unknown_device_names_near_matches():
    with pytest.raises(UnknownDevice, match="sim:gfx942"):
        resolve("sim:gfx492")


def test_every_listed_name_resolves():
    assert all(resolve(name) for name in device_names())


@pytest.mark.parametrize(("count", "file", "open_"), [(1, "", 0), (2, "", 1), (2, "/dev/one", 0)])
def test_gpus_that_are_not_kept_apart_are_told(monkeypatch, count, file, open_):
    reported = SimpleNamespace(name="NVIDIA H200", major=9, minor=0, uuid="one")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: reported)
    monkeypatch.setattr(vendors, "gpu_file", lambda vendor, uuid: file if uuid == "GPU-one" else "")
    result = [status for status in device_statuses() if status.name.startswith("cuda:")]
    assert len(result) == count
    for status in result:
        assert sum("other GPUs" in problem for problem in status.problems) == open_
        assert len(status.problems) == len(status.fixes)
