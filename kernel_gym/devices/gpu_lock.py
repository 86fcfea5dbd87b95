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
from typing import IO


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
        with contextlib.closing(room):
            yield

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """With nobody else on the GPU."""
        with _held(self._gate, fcntl.LOCK_EX):
            room = _take(self._room, fcntl.LOCK_EX)
        with contextlib.closing(room):
            yield


def _take(path: Path, mode: int) -> IO[bytes]:
    file = open(path, "ab")  # noqa: SIM115 - closing it lets go
    fcntl.flock(file, mode)
    return file


def _held(path: Path, mode: int) -> contextlib.closing[IO[bytes]]:
    return contextlib.closing(_take(path, mode))
