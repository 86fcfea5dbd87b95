"""References in PyTorch as work: inputs are copied, one graph is captured, failures have a text."""

import ctypes
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from kernel_gym.launcher import reference as module
from kernel_gym.launcher.driver import DriverError
from kernel_gym.launcher.reference import NotCapturedError, ReferenceExecution
from kernel_gym.launcher.timing import MemoryPlace

ADD = "def f(x, factor):\n    return x * factor\n"
NOWHERE = MemoryPlace(0, on_device=False)
FORM = [{"bytes": 16, "offset": 0, "shape": [4], "strides": [1], "dtype": "float32"}, 2.0]


class Driver:
    stream = 0

    def __init__(self):
        self.copies = []

    def wait(self):
        pass

    def queue_copy_in(self, target, source, size):
        self.copies.append((target, source, size))

    def queue_copy_out(self, target, source, size):
        self.copies.append((target, source, size))

    def copy(self, target, source, size):
        assert target == 12288
        self.copies.append(("device", source, size))


@pytest.fixture
def opened(monkeypatch):
    """Opens references on the host, without streams of a GPU."""
    monkeypatch.setattr(module, "_DEVICE", "cpu")
    monkeypatch.setattr(torch.cuda, "ExternalStream", lambda stream: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    return lambda source: ReferenceExecution(Driver(), source, "f", FORM)


class CopyingDriver(Driver):
    def queue_copy_in(self, target, source, size):
        ctypes.memmove(target, source, size)


def test_the_first_call_already_has_inputs(opened):
    checked = "def f(x, factor):\n    if x.sum() != 4:\n        raise RuntimeError(str(x))\n"
    work = opened(f"{checked}    return x * factor\n")
    work._driver = CopyingDriver()
    ones = torch.ones(4)
    work.prepare(MemoryPlace(ones.data_ptr(), on_device=False), graph=False)
    assert torch.equal(work._results[0], torch.full((4,), 2.0))


def test_inputs_go_to_the_storage_and_results_come_back(opened):
    work = opened(ADD)
    work._storages[0].copy_(torch.ones(4).view(torch.uint8))
    place = MemoryPlace(4096, on_device=False)
    work.begin(place)
    assert work._driver.copies == [(work._storages[0].data_ptr(), 4096, 16)]
    work.prepare(place, graph=False)
    work.start(graph=False)
    assert torch.equal(work._results[0], torch.full((4,), 2.0))
    work.queue_results([MemoryPlace(8192, on_device=False), MemoryPlace(12288, on_device=True)])
    assert [copy[0::2] for copy in work._driver.copies[2:]] == [(8192, 16), ("device", 16)]


def test_a_failure_of_pytorch_has_its_first_line(opened):
    work = opened("def f(x, factor):\n    return x.view(3)\n")
    with pytest.raises(DriverError, match="PyTorch: shape"):
        work.prepare(NOWHERE, graph=False)


def test_what_cannot_be_captured_is_told_and_a_graph_is_captured_once(opened, monkeypatch):
    made = []
    graph = SimpleNamespace(replay=lambda: made.append("replay"), reset=lambda: None)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: made.append("new") or graph)
    monkeypatch.setattr(torch.cuda, "graph", lambda graph, stream: nullcontext())
    work = opened(ADD)
    for _ in range(2):
        work.prepare(NOWHERE, graph=True)
        work.start(graph=True)
    assert made == ["new", "replay", "replay"]

    def refuse(graph, stream):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(torch.cuda, "graph", refuse)
    with pytest.raises(NotCapturedError, match="not permitted"):
        opened(ADD).prepare(NOWHERE, graph=True)
