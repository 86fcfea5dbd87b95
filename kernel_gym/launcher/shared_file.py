"""Memory of the host that the judge and its launchers share: inputs go in, outputs come out.

No process of a candidate has its descriptor. A device does not map it either: the launcher copies
what one call needs, so that a kernel finds the inputs of no other call.
"""

from __future__ import annotations

import ctypes
import mmap
import os


class SharedFile:
    """A piece of memory without a name.

    Args:
        size: Bytes. They take room when they are first written.
        descriptor: Of the file that another process has made; None makes one.
    """

    def __init__(self, size: int, descriptor: int | None = None) -> None:
        self.size = size
        if descriptor is None:
            descriptor = os.memfd_create("kernel-gym-launcher", os.MFD_CLOEXEC)
            os.ftruncate(descriptor, size)
        self.descriptor = descriptor
        self.memory = mmap.mmap(descriptor, size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def place(self, offset: int, size: int) -> int:
        """Returns the address of some bytes in this process.

        Raises:
            ValueError: They do not lie within.
        """
        if not 0 <= offset <= offset + size <= self.size:
            raise ValueError(f"bytes {offset} to {offset + size} of {self.size} are wanted")
        return self.address + offset

    def close(self) -> None:
        """Gives the descriptor back. The memory stays while something in the process uses it."""
        os.close(self.descriptor)
