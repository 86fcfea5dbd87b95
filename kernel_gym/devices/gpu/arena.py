"""The memory that judge and worker share on a GPU: inputs, HIP outputs, and the worker's answers.

One allocation of the judge's own, opened by workers through a handle. Where handles do not work it
passes through host memory: each side has a copy on the device, and the pieces that change go
through a shared file.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from kernel_gym.devices.base import InfraError
from kernel_gym.devices.gpu import runtime as gpu_runtime

POISON = 0xFF
"""Every byte of fresh memory: NaN in every float format, -1 in every integer one."""
CANARY = 0xA5
GUARD = 512
"""Bytes of canary before and after each piece."""
ALIGNMENT = 512
SETTLING_KERNELS = 2


@dataclass(frozen=True)
class Piece:
    """A part of the arena, bytes."""

    start: int
    size: int
    label: str

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.start + self.size


class ArenaFull(Exception):
    """A workload does not fit."""


class Arena:
    """The judge's side.

    Args:
        size: bytes on the device.
        by_handle: share by the runtime's handle; otherwise through host memory.

    Raises:
        InfraError: the device has no room, or does not share memory by handle.
    """

    def __init__(self, size: int, by_handle: bool = True) -> None:
        self.size = size
        self.file: int | None = None
        self._address = 0
        self._pieces: list[Piece] = []
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

    def reset(self) -> None:
        """Forgets all pieces and poisons what they used."""
        self._bytes[: self._next].fill_(POISON)
        self._pieces, self._next = [], GUARD

    def take(self, size: int, label: str, guarded: bool = True) -> Piece:
        """The next piece.

        Args:
            size: bytes.
            label: says what it is when it is damaged.
            guarded: poisoned, with canaries around it; otherwise left as it is.

        Raises:
            ArenaFull: there is no room left.
        """
        piece = Piece(self._next, size, label)
        after = piece.end + GUARD
        following = -(-after // ALIGNMENT) * ALIGNMENT
        if following > self.size:
            raise ArenaFull(
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
        """Bytes that are taken."""
        return self._next

    def view(self, piece: Piece) -> torch.Tensor:
        """The piece's bytes, uint8 [size]."""
        return self._bytes[piece.start : piece.end]

    def rows(self, pieces: Sequence[Piece], dtype: torch.dtype) -> torch.Tensor:
        """Pieces of one size that lie evenly spaced, [pieces, elements]; two at least."""
        steps = {after.start - before.start for before, after in pairwise(pieces)}
        assert len(steps) == 1, steps
        whole = self._bytes[: self.size // dtype.itemsize * dtype.itemsize].view(dtype)
        return whole.as_strided(
            (len(pieces), pieces[0].size // dtype.itemsize),
            (steps.pop() // dtype.itemsize, 1),
            whole.storage_offset() + pieces[0].start // dtype.itemsize,
        )

    def poison(self, pieces: Iterable[Piece]) -> None:
        """Overwrites pieces."""
        for piece in pieces:
            self.view(piece).fill_(POISON)

    @property
    def everything(self) -> Piece:
        """All that is taken, canaries included."""
        return Piece(0, self._next, "all")

    def settle(self) -> None:
        """Returns when no other process has work on the GPU.

        Processes share a GPU by turns. A kernel of the judge waits until the others have nothing to
        do or their turn is over; in the latter case the next one waits for all of their next turn,
        so that the judge's clock shows work that a worker has left running.
        """
        for _ in range(SETTLING_KERNELS):
            self._pulse.zero_()
            torch.cuda.synchronize()

    def publish(self, pieces: Iterable[Piece]) -> None:
        """Makes what the judge has written there visible to workers, who still have to pull it."""
        if self.file is not None:
            for piece in pieces:
                self._host[piece.start : piece.end].copy_(self.view(piece))
        torch.cuda.synchronize()

    def fetch(self, pieces: Iterable[Piece]) -> None:
        """Makes what a worker has written and pushed there visible here."""
        if self.file is not None:
            for piece in pieces:
                self.view(piece).copy_(self._host[piece.start : piece.end])

    def damaged(self) -> str:
        """The label of a piece beside which a canary was overwritten; empty when none was."""
        bounds = [p.start for p in self._pieces[1:]] + [self._next + GUARD]
        for piece, following in zip(self._pieces, bounds, strict=True):
            before = self._bytes[piece.start - GUARD : piece.start]
            after = self._bytes[piece.end : min(following - GUARD, self.size)]
            if bool((before != CANARY).any() | (after != CANARY).any()):
                return piece.label
        return ""

    def close(self) -> None:
        """Gives the memory back."""
        if self._address:
            with contextlib.suppress(gpu_runtime.GpuRuntimeError):
                gpu_runtime.free(self._address)
        if self.file is not None:
            os.close(self.file)
        self._address, self.file = 0, None
