"""Captures work as graphs that share one pool of device memory.

`torch.cuda.graph` returns all cached memory to the driver before it captures, and gives each graph
a pool of its own. Both ask the driver for memory, which takes milliseconds, and several times as
long while other processes make or end their contexts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from kernel_gym.devices.gpu import runtime as gpu_runtime

Result = TypeVar("Result")
RESERVED_BYTES = 1 << 30
"""What is asked of the driver ahead, for calls and for graphs each: the outputs of one ring ..."""
LEAST_BYTES = RESERVED_BYTES // 2
"""... and on a crowded GPU."""
HELD_BYTES = 2 * RESERVED_BYTES
"""What a process that stays keeps between two tasks on a crowded GPU."""


class Recorder:
    """Of a process that has its GPU context; asks for the memory of most tasks at once."""

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()
        self._reserve()

    def record(self, work: Callable[[], Result]) -> tuple[torch.cuda.CUDAGraph, Result]:
        """A graph of what `work` puts on the device, and what it returns.

        What an earlier graph has returned is lost when that graph is no longer held.
        """
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with self.beside():
            graph.capture_begin(pool=self._pool)
            try:
                result = work()
            finally:
                graph.capture_end()
        return graph, result

    def beside(self) -> torch.cuda.StreamContext:
        """Where graphs are captured: what has run there needs no memory of the driver then."""
        return torch.cuda.stream(self._stream)

    def release(self) -> None:
        """Gives memory back that others may need. No other graph may be held."""
        if gpu_runtime.keeps_too_much(torch.cuda.memory_reserved(), HELD_BYTES):
            del self._first
            torch.cuda.empty_cache()
            self._reserve()

    def _reserve(self) -> None:
        """Begins a pool. Torch keeps what is freed, and hands out parts of it."""
        size = LEAST_BYTES if gpu_runtime.crowded() else RESERVED_BYTES
        gpu_runtime.reserve(size)
        self._pool = torch.cuda.graph_pool_handle()
        # a pool ends with its last graph
        self._first, _ = self.record(lambda: gpu_runtime.reserve(size)[:1].zero_())
