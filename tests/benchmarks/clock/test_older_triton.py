"""An older Triton launches with arguments that its compiled kernels do not take."""

from types import SimpleNamespace
from typing import Any

from benchmarks.clock.older_triton import mark_constants
from kernel_gym.worker.sim.triton_driver import SimLauncher

SOURCE = SimpleNamespace(
    signature={"x": "*fp32", "rows": "i32", "stride": "i32", "step": "i32"},
    constants={"stride": 1, "BLOCK": 64},
)
RUNTIME: Any = None  # nothing is launched
METADATA = SimpleNamespace(num_warps=4, warp_size=64)


def pairs():
    return list(SimLauncher(RUNTIME, SOURCE, METADATA)._pairs((4096, 7, 1, 3)))


def test_arguments_that_became_constants_are_left_out(monkeypatch):
    everything = [("*fp32", 4096), ("i32", 7), ("i32", 1), ("i32", 3)]
    assert pairs() == everything
    monkeypatch.setattr(SimLauncher, "__init__", SimLauncher.__init__)  # restored afterwards
    mark_constants()
    assert pairs() == [pair for pair in everything if pair != ("i32", 1)]
