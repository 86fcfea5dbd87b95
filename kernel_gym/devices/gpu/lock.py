"""The lock of one GPU: one evaluation at a time, across all processes of the machine."""

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
        self.state = folder / f"{name}.json"
        """Where the judges of this GPU share their measurements of its noise."""

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Holds the GPU alone within the context."""
        with open(self._path, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
