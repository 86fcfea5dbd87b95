"""The memory that the judge and its workers share on a GPU: inputs, outputs of HIP candidates.

The judge makes one allocation, and workers open it by handle. Where handles do not work, each side
has a copy on the device, and changed pieces are copied through a shared file on the host.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterable, Sequence
from itertools import pairwise

import torch

from kernel_gym.devices.base import InfraError
from kernel_gym.devices.gpu import runtime as gpu_runtime
from kernel_gym.devices.placement import ArenaPiece, MemoryFullError

POISON = 0xFF
"""The value of every fresh byte: NaN in every float format, -1 in every integer format."""
CANARY = 0xA5
GUARD = 512
"""Canary bytes before and after each piece."""
ALIGNMENT = 512
SETTLING_KERNELS = 2


class GpuArena:
    """The judge's side of the shared memory.

    Args:
        size: Bytes on the device.
        by_handle: Share the allocation by the runtime's handle; otherwise through host memory.

    Raises:
        InfraError: The device has no room, or does not share memory by handle.
    """

    def __init__(self, size: int, by_handle: bool = True) -> None:
        self.size = size
        self.file: int | None = None
        self._address = 0
        self._pieces: list[ArenaPiece] = []
        self._next = GUARD
        try:
            self._address = gpu_runtime.allocate(size)
            self.handle = gpu_runtime.export(self._address) if by_handle else b""
        except gpu_runtime.GpuRuntimeError as error:
            self.close()
            raise InfraError(f"the arena of {size >> 20} MiB: {error}") from error
        self._bytes = gpu_runtime.as_tensor(self._address, size)
        self._pulse = torch.zeros(1, device=self._bytes.device)
        if not by_handle:
            self.file = os.memfd_create("kernel-gym-arena")
            os.ftruncate(self.file, size)
            self._host = torch.frombuffer(mmap.mmap(self.file, size), dtype=torch.uint8)

    @property
    def coherent(self) -> bool:
        """Whether judge and workers see the same bytes. Otherwise each side has a copy."""
        return self.file is None

    def reset(self) -> None:
        """Releases all pieces and poisons their bytes."""
        self._bytes[: self._next].fill_(POISON)
        self._pieces, self._next = [], GUARD

    def take(self, size: int, label: str, guarded: bool = True) -> ArenaPiece:
        """Allocates the next piece.

        Args:
            size: Bytes.
            label: A name for error messages.
            guarded: Poison the piece and put canaries around it. Otherwise its bytes stay.

        Raises:
            MemoryFullError: There is no room.
        """
        piece = ArenaPiece(self._next, size, label)
        after = piece.end + GUARD
        following = -(-after // ALIGNMENT) * ALIGNMENT
        if following > self.size:
            raise MemoryFullError(
                f"{label} of {size >> 20} MiB: the arena of {self.size >> 20} MiB is full"
            )
        if guarded:
            self._bytes[piece.start - GUARD : following].fill_(CANARY)
            self.poison([piece])
            self._pieces.append(piece)
        self._next = following
        return piece

    @property
    def used(self) -> int:
        """The number of bytes in use."""
        return self._next

    def view(self, piece: ArenaPiece) -> torch.Tensor:
        """Returns the bytes of a piece, uint8 [size]."""
        return self._bytes[piece.start : piece.end]

    def rows(self, pieces: Sequence[ArenaPiece], dtype: torch.dtype) -> torch.Tensor:
        """Returns evenly spaced pieces of one size as [pieces, elements]; at least two pieces."""
        steps = {after.start - before.start for before, after in pairwise(pieces)}
        assert len(steps) == 1, steps
        whole = self._bytes[: self.size // dtype.itemsize * dtype.itemsize].view(dtype)
        return whole.as_strided(
            (len(pieces), pieces[0].size // dtype.itemsize),
            (steps.pop() // dtype.itemsize, 1),
            whole.storage_offset() + pieces[0].start // dtype.itemsize,
        )

    def poison(self, pieces: Iterable[ArenaPiece]) -> None:
        """Overwrites pieces with the poison pattern."""
        for piece in pieces:
            self.view(piece).fill_(POISON)

    @property
    def everything(self) -> ArenaPiece:
        """One piece with everything in use, canaries included."""
        return ArenaPiece(0, self._next, "all")

    def settle(self) -> None:
        """Waits until no other process has work on the GPU.

        Processes share a GPU by time slices. A kernel of the judge starts when the other processes
        have no work or their slice ends. In the second case the next kernel waits for their whole
        next slice. So the judge's clock shows work that a worker left running.
        """
        for _ in range(SETTLING_KERNELS):
            self._pulse.zero_()
            torch.cuda.synchronize()

    def publish(self, pieces: Iterable[ArenaPiece]) -> None:
        """Makes the judge's writes visible to workers, which still have to copy them."""
        if self.file is not None:
            for piece in pieces:
                self._host[piece.start : piece.end].copy_(self.view(piece))
        torch.cuda.synchronize()

    def fetch(self, pieces: Iterable[ArenaPiece]) -> None:
        """Makes the bytes that a worker has copied out visible to the judge."""
        if self.file is not None:
            for piece in pieces:
                self.view(piece).copy_(self._host[piece.start : piece.end])

    def damaged(self) -> str:
        """Returns the label of a piece with an overwritten canary; empty if there is none."""
        bounds = [p.start for p in self._pieces[1:]] + [self._next + GUARD]
        for piece, following in zip(self._pieces, bounds, strict=True):
            before = self._bytes[piece.start - GUARD : piece.start]
            after = self._bytes[piece.end : min(following - GUARD, self.size)]
            if bool((before != CANARY).any() | (after != CANARY).any()):
                return piece.label
        return ""

    def close(self) -> None:
        """Frees the memory."""
        if self._address:
            with contextlib.suppress(gpu_runtime.GpuRuntimeError):
                gpu_runtime.free(self._address)
        if self.file is not None:
            os.close(self.file)
        self._address, self.file = 0, None
