"""A worker runs only while it is asked for something, as long as turns are taken.

A comparison times two workers by turns. What the candidate's process did in the baseline's turn
would slow the baseline down; what it did after the judge's clock has stopped would cost nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from kernel_gym.devices.gpu.arena import Arena
from kernel_gym.sandbox.spawn import Child


class Turns:
    """Of one worker.

    Args:
        child: its processes.
        arena: of the judge on the same GPU.
    """

    def __init__(self, child: Child, arena: Arena) -> None:
        self._child, self._arena = child, arena
        self._taken = False
        self.ended = 0.0
        """When the last answer was complete (`time.perf_counter`): while turns are taken, with all
        processes stopped and no work of theirs left on the GPU."""

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Meanwhile the processes are stopped between two requests.

        Raises:
            NotStoppedError: one goes on.
        """
        self._taken = True
        try:
            self.end()
            yield
        finally:
            self._taken = False
            self._child.pause.resume()

    def begin(self) -> None:
        """Before a request: the processes go on."""
        if self._taken:
            self._child.pause.resume()

    def end(self, go_on: bool = False) -> None:
        """After an answer: stops the processes, and waits until the GPU has no work of theirs.

        The clock is read before the search for processes that were not known, which takes longer
        than most calls, and again when there were any.

        Args:
            go_on: another request follows at once.

        Raises:
            NotStoppedError: a process goes on.
        """
        self.ended = time.perf_counter()
        if go_on or not self._taken:
            return
        self._child.pause.stop_known()
        while True:
            self._arena.settle()
            self.ended = time.perf_counter()
            if not self._child.stop_all():
                return
