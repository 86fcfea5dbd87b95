"""The status of a GPU, which `kernel-gym doctor` shows."""

from types import SimpleNamespace

import pytest
import torch

from kernel_gym.devices.gpu import backend
from kernel_gym.devices.gpu.backend import GpuBackend
from kernel_gym.torch_device import build


@pytest.fixture
def h200(monkeypatch):
    reported = SimpleNamespace(name="NVIDIA H200", major=9, minor=0)
    monkeypatch.setattr(backend, "_properties", lambda name: reported)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)


def test_a_gpu_with_a_data_sheet_is_usable(h200):
    status = GpuBackend().status("cuda:0")
    assert status.usable
    assert status.problems == ()


def test_a_gpu_is_not_usable_where_no_host_code_can_be_recorded(h200, monkeypatch, tmp_path):
    """The host code of a candidate for a real GPU runs on our device for PyTorch, too."""
    monkeypatch.setattr(build, "HERE", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    status = GpuBackend().status("cuda:0")
    assert not status.usable
    assert status.problems == (
        "candidates cannot be recorded: found no C++ compiler, expected g++ 11 or newer",
    )
    assert status.fixes == ("apt install g++",)
