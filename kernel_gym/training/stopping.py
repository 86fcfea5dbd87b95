"""Stops a training after its current step, with a checkpoint, on SIGINT or SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """Lets a trainer save a checkpoint and end after its step when the first signal arrives.

    The second signal interrupts at once.

    Args:
        log: Called with each line for the console.

    Attributes:
        requested: Whether a signal has arrived.
    """

    def __init__(self, log: Callable[[str], None] = lambda line: None) -> None:
        self.requested, self._log = False, log

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handles the signals inside a `with` block. Outside the main thread it does nothing.

        Raises:
            KeyboardInterrupt: At the end of the block, if a signal has arrived.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._request) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self.requested:
            raise KeyboardInterrupt

    def _request(self, number: int, frame: object) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        self._log("stopping with a checkpoint after this step; again to stop at once")

    def callback(self) -> TrainerCallback:
        """A callback for a trainer of transformers that ends the training on request."""
        from transformers import TrainerCallback

        stopping = self

        class Stopped(TrainerCallback):
            def on_step_end(
                self,
                args: TrainingArguments,
                state: TrainerState,
                control: TrainerControl,
                **_: object,
            ) -> object:
                if stopping.requested:
                    control.should_save = control.should_training_stop = True
                return control

        return Stopped()
