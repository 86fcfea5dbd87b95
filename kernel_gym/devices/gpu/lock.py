"""The lock of one GPU across all processes of the machine: one evaluation alone, or several users.

Code that is not timed may use the GPU beside others of its kind. Everybody passes a turnstile
first, so that an evaluation waits for those who use the GPU now and for no later ones.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path


class GpuLock:
    """A lock between the judges of one machine. It is released if the process that holds it ends.

    Args:
        device: A name of the GPU that is the same in every process.
    """

    def __init__(self, device: str) -> None:
        folder = Path(tempfile.gettempdir()) / f"kernel-gym-locks-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        name = re.sub(r"[^\w-]", "_", device)
        self._path = folder / f"{name}.lock"
        self._turnstile = folder / f"{name}.turn"
        self.state = folder / f"{name}.json"
        """Where the judges of this GPU share their measurements of its noise."""

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Holds the GPU alone within the context."""
        with self._held(fcntl.LOCK_EX):
            yield

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Holds the GPU within the context, perhaps beside others who share it."""
        with self._held(fcntl.LOCK_SH):
            yield

    @contextlib.contextmanager
    def _held(self, how: int) -> Iterator[None]:
        with open(self._path, "ab") as file:
            with open(self._turnstile, "ab") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                fcntl.flock(file, how)
            yield
