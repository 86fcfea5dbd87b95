"""The judge's side of the memory that launchers read inputs from and write outputs to.

Offsets below its size are in memory of the host, and those behind it in the staging memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import torch

from kernel_gym.devices.gpu.staging import StagingMemory
from kernel_gym.launcher.shared_file import SharedFile

ALIGNMENT = 256


class HostMemory:
    """Memory of the host, as the judge sees it.

    Args:
        size: Bytes.
        where: The judge's device, which copies to and from it.
        staging: Memory on that device, which what a call needs goes to if it fits.
    """

    def __init__(self, size: int, where: torch.device, staging: StagingMemory) -> None:
        self.file = SharedFile(size)
        self.where = where
        self._staging = staging
        self._bytes = torch.frombuffer(self.file.memory, dtype=torch.uint8)
        if where.type == "cuda":
            runtime = torch.cuda.cudart()
            with contextlib.suppress(RuntimeError):  # only slower copies without it
                runtime.cudaHostRegister(self.file.address, size, 0)

    @property
    def size(self) -> int:
        """Bytes of the host."""
        return self.file.size

    def begin(self, size: int) -> int:
        """Returns where so many bytes of one call begin: in the staging memory if they fit."""
        return self.size if 0 < size <= self._staging.size else 0

    def write(self, offset: int, data: torch.Tensor) -> int:
        """Copies bytes, uint8 [size], to an offset; returns the offset behind them."""
        end = offset + data.numel()
        if offset >= self.size:
            self._staging.write(offset - self.size, data)
        else:
            self._bytes[offset:end].copy_(data, non_blocking=True)
        return end

    def stage(self, offset: int, pieces: Sequence[torch.Tensor]) -> int:
        """Writes the inputs of one call, and waits until they are there.

        Args:
            offset: Where they begin if they go through the host.
            pieces: Their bytes, uint8 [size] each.

        Returns:
            Where they begin, for a launcher.
        """
        begin = end = self.begin(sum(piece.numel() for piece in pieces)) or offset
        for piece in pieces:
            end = self.write(end, piece)
        self.settle()
        return begin

    def read(self, offset: int, size: int) -> torch.Tensor:
        """Returns a copy of some bytes on the judge's device, uint8 [size]."""
        if offset >= self.size:
            return self._staging.read(offset - self.size, size)
        return self._bytes[offset : offset + size].to(self.where, copy=True)

    def settle(self) -> None:
        """Waits until all copies of the judge have ended."""
        if self.where.type == "cuda":
            torch.cuda.synchronize()

    def close(self) -> None:
        """Gives the memory back."""
        if self.where.type == "cuda":
            with contextlib.suppress(RuntimeError):
                torch.cuda.cudart().cudaHostUnregister(self.file.address)
        self.file.close()


def aligned(offset: int) -> int:
    """Returns the next place at which results may begin."""
    return -(-offset // ALIGNMENT) * ALIGNMENT
