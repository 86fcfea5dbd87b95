"""Stops a worker between requests, while two workers are timed in turn.

Paired timing runs blocks of two workers in turn. Work that the candidate did during the baseline's
block would slow the baseline down. Work that it did after the judge read its clock would cost
nothing. So a worker's processes run only while a request to it is under way.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from kernel_gym.devices.gpu.arena import GpuArena
from kernel_gym.sandbox.spawn import Child


class Alternation:
    """Stops and resumes one worker.

    Args:
        child: The worker's processes.
        arena: The judge's memory on the same GPU; tells when the GPU has no work of the worker.
    """

    def __init__(self, child: Child, arena: GpuArena) -> None:
        self._child, self._arena = child, arena
        self._active = False
        self.ended = 0.0
        """When the last answer was complete, by `time.perf_counter`. While the context of
        `paused_between_requests` is open, all processes are stopped at that time and have no work
        on the GPU."""

    @contextlib.contextmanager
    def paused_between_requests(self) -> Iterator[None]:
        """Within the context, the processes are stopped between two requests.

        Raises:
            NotStoppedError: A process could not be stopped.
        """
        self._active = True
        try:
            self.end()
            yield
        finally:
            self._active = False
            self._child.pause.resume()

    def begin(self) -> None:
        """Resumes the processes before a request."""
        if self._active:
            self._child.pause.resume()

    def end(self, go_on: bool = False) -> None:
        """Stops the processes after an answer, and waits until they have no work on the GPU.

        The clock is read before the search for unknown processes, which takes longer than most
        calls, and again if the search finds any.

        Args:
            go_on: Do not stop the processes, because another request follows at once.

        Raises:
            NotStoppedError: A process could not be stopped.
        """
        self.ended = time.perf_counter()
        if go_on or not self._active:
            return
        self._child.pause.stop_known()
        while True:
            self._arena.settle()
            self.ended = time.perf_counter()
            if not self._child.stop_all():
                return
