"""Stopping a training at the end of a step, with a checkpoint, when it is asked to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """Notes the first SIGINT or SIGTERM, and lets a trainer save and end after its step.

    The second one interrupts at once.

    Args:
        say: Takes a line for the console.
    """

    def __init__(self, say: Callable[[str], None] = lambda line: None) -> None:
        self.asked, self._say = False, say

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Takes the signals for as long as it is open; only a main thread gets any.

        Raises:
            KeyboardInterrupt: When it closes, if the training was asked to stop.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._ask) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self.asked:
            raise KeyboardInterrupt

    def _ask(self, number: int, frame: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._say("stopping with a checkpoint after this step; again to stop at once")

    def callback(self) -> Any:
        """A callback for a trainer of transformers, which ends it where that was asked."""
        from transformers import TrainerCallback

        stopping = self

        class Stopped(TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
                if stopping.asked:
                    control.should_save = control.should_training_stop = True
                return control

        return Stopped()
