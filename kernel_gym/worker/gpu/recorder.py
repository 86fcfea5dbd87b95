"""Captures work as graphs that share one pool of device memory.

`torch.cuda.graph` returns all cached memory to the driver before it captures, and gives each graph
a separate pool. Both lead to requests for memory to the driver. Such a request takes milliseconds,
and several times longer while other processes make or end their contexts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from kernel_gym.devices.gpu import runtime as gpu_runtime

Result = TypeVar("Result")
RESERVED_BYTES = 1 << 30
"""Bytes to reserve in advance, for calls and for graphs each: the outputs of one input pool."""
LEAST_BYTES = RESERVED_BYTES // 2
"""Bytes to reserve in advance on a crowded GPU."""
HELD_BYTES = 2 * RESERVED_BYTES
"""Most bytes that a process keeps between two tasks on a crowded GPU."""


class GraphRecorder:
    """Captures graphs in a process with a GPU context; reserves enough memory for most tasks."""

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()
        self._reserve()

    def record(self, work: Callable[[], Result]) -> tuple[torch.cuda.CUDAGraph, Result]:
        """Captures the work that `work` enqueues as a graph; returns the graph and the result.

        The memory of a result belongs to its graph, and is reused once the graph is deleted.
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
        """The stream of captures. Work that has run there before needs no new driver memory."""
        return torch.cuda.stream(self._stream)

    def release(self) -> None:
        """Returns memory that other processes may need. No other graph may exist."""
        if gpu_runtime.keeps_too_much(torch.cuda.memory_reserved(), HELD_BYTES):
            del self._first
            torch.cuda.empty_cache()
            self._reserve()

    def _reserve(self) -> None:
        """Starts a pool. Torch keeps freed memory in it and allocates from it."""
        size = LEAST_BYTES if gpu_runtime.crowded() else RESERVED_BYTES
        gpu_runtime.reserve(size)
        self._pool = torch.cuda.graph_pool_handle()
        # a pool ends with its last graph
        self._first, _ = self.record(lambda: gpu_runtime.reserve(size)[:1].zero_())
