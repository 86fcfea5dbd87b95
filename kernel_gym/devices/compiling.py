"""The kernel that a worker was compiling when its time ended, as the worker says."""

from __future__ import annotations

import os

from kernel_gym.inert import inert_line
from kernel_gym.protocol.compiling import SIZE
from kernel_gym.records import COMPILING


class CompilerNote:
    """A page of memory on which one worker notes the kernel that Triton compiles."""

    def __init__(self) -> None:
        memory = os.memfd_create("kernel-gym-compiling")
        self._file = os.fdopen(memory, "r+b", buffering=0)
        self._file.truncate(SIZE)
        self.descriptor = self._file.fileno()

    def reason(self) -> str:
        """Returns a clause for the message of a time-out; empty if nothing is noted, or closed."""
        if self._file.closed:
            return ""
        content = os.pread(self.descriptor, SIZE, 0).rstrip(b"\0")
        kernel = inert_line(content.decode("utf-8", errors="replace"), limit=SIZE)
        return f"; Triton was {COMPILING} {kernel}" if kernel else ""

    def close(self) -> None:
        """Closes the file. It may be closed already."""
        self._file.close()
