"""Memory of the judge's own process on a GPU, where it draws inputs and compares values."""

from __future__ import annotations

import torch

RESERVED_BYTES = 4 << 30
"""Memory that the judge allocates ahead. Inputs and answers of most evaluations fit into it."""
FREE_SHARE = 0.25
"""A GPU is crowded if a smaller share of its memory is free. One evaluation needs about as much."""
KEPT_BYTES = 8 << 30
"""Bytes that a process may keep unused while there is room: twice what it allocates ahead."""
ROOM_SHARE = 1 / 8
"""Share of a GPU's memory that an evaluation may need."""
HELD_BYTES = 2 << 30
"""Bytes that PyTorch may keep unused in the judge's process on a crowded GPU."""


class JudgeMemory:
    """The judge's part of a GPU; it does nothing where the judge computes on the host.

    Args:
        where: The judge's device.
    """

    def __init__(self, where: torch.device) -> None:
        self.where = where
        self._on_gpu = where.type == "cuda"

    def reserve(self) -> None:
        """Allocates memory that PyTorch keeps when it is freed, and uses for later tensors."""
        if self._on_gpu and not self._crowded():
            torch.empty(RESERVED_BYTES, dtype=torch.uint8, device=self.where)

    def select(self) -> None:
        """Selects the GPU in this thread: a new thread starts with the first one."""
        if self._on_gpu:
            torch.cuda.set_device(self.where)

    def synchronize(self) -> None:
        """Waits until this process has no work left on the GPU."""
        if self._on_gpu:
            torch.cuda.synchronize()

    def has_room(self) -> bool:
        """Whether an evaluation finds memory."""
        if not self._on_gpu:
            return True
        free, total = torch.cuda.mem_get_info()
        return free + self._unused() >= ROOM_SHARE * total

    def give_back(self, least: int | None = None) -> None:
        """Returns PyTorch's unused memory to the driver if it is too much.

        An allocation by the driver takes milliseconds. So the memory that most tasks need is kept
        while there is room.

        Args:
            least: Bytes that it may keep on a crowded GPU. None: the GPU's state does not matter.
        """
        if not self._on_gpu:
            return
        held = self._unused()
        if held > KEPT_BYTES or (least is not None and held > least and self._crowded()):
            torch.cuda.empty_cache()

    def _unused(self) -> int:
        return torch.cuda.memory_reserved() - torch.cuda.memory_allocated()

    def _crowded(self) -> bool:
        free, total = torch.cuda.mem_get_info()
        return free < FREE_SHARE * total
