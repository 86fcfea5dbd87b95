"""Does on a second processor what an evaluation will need: its data, and the baseline's times.

A judge waits most of its time, for the recorder and for the simulated GPU. This thread fills the
caches of the evaluation meanwhile. All of it depends on seeds alone, so nothing changes but when it
is computed. A candidate that fails does not need it, so only evaluations that somebody waits for
have it: in training all processors are busy anyway.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable

import torch

Work = Callable[[], object]


class Ahead:
    """Calls functions on a thread of its own, in order.

    An exception ends the work: the judge computes the value again, and gets the exception.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ahead", daemon=True)
        self._thread.start()

    def add(self, work: Work) -> None:
        """Adds a function, whose value is forgotten."""
        self._queue.put(work)

    def finish(self) -> None:
        """Waits until all is done. Nothing may be added afterwards."""
        self._queue.put(None)
        self._thread.join()

    def stop(self) -> None:
        """Leaves out what has not begun, and waits for the rest."""
        self._stopped.set()
        self.finish()

    def _run(self) -> None:
        torch.set_num_threads(1)  # as in the evaluation: the sum of a row depends on it
        with contextlib.suppress(Exception):
            while (work := self._queue.get()) is not None and not self._stopped.is_set():
                work()
