"""The lock of one GPU: checks of values share it, timing has it alone, over all processes.

Two lock files, so that those who share cannot keep the one who wants to be alone waiting for ever:
each passes the gate first, and who waits to be alone keeps the gate shut.
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
    """A readers-writer lock between the judges of one machine.

    Args:
        device: names the GPU, the same in every process.
    """

    def __init__(self, device: str) -> None:
        folder = Path(tempfile.gettempdir()) / f"kernel-gym-locks-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        name = re.sub(r"[^\w-]", "_", device)
        self._gate, self._room = folder / f"{name}.gate", folder / f"{name}.room"
        self.state = folder / f"{name}.json"
        """Where judges of this GPU leave what they have measured of it."""

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Among others who share it."""
        with _held(self._gate, fcntl.LOCK_EX):
            room = _take(self._room, fcntl.LOCK_SH)
        try:
            yield
        finally:
            os.close(room)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """With nobody else on the GPU."""
        with _held(self._gate, fcntl.LOCK_EX):
            room = _take(self._room, fcntl.LOCK_EX)
        try:
            yield
        finally:
            os.close(room)


def _take(path: Path, mode: int) -> int:
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(file, mode)
    return file


@contextlib.contextmanager
def _held(path: Path, mode: int) -> Iterator[None]:
    file = _take(path, mode)
    try:
        yield
    finally:
        os.close(file)
