"""Memory on the GPU by which the judge hands inputs of timed calls to its launchers.

The judge draws inputs on the GPU. A way through the host takes longer than most calls. The launcher
maps this memory, so a kernel that finds it can read and change it. So it holds the inputs of one
call at a time, which the judge writes again before each call.
"""

from __future__ import annotations

import torch

from kernel_gym.launcher.driver import handle_of
from kernel_gym.launcher.vendors import VENDORS

STAGING_BYTES = 512 << 20
"""Larger inputs go through the host."""


class StagingMemory:
    """Memory of the judge's process on a GPU, and the handle by which launchers open it.

    Args:
        vendor: `cuda` or `rocm`.
        where: The GPU.
    """

    def __init__(self, vendor: str, where: torch.device) -> None:
        self._bytes = torch.empty(0, dtype=torch.uint8)
        self.handle = b""
        """Empty where the driver shares no memory; then `size` is 0."""
        if where.type == "cuda":
            torch.cuda.empty_cache()  # so that the piece is an allocation by itself
            self._bytes = torch.empty(STAGING_BYTES, dtype=torch.uint8, device=where)
            self.handle = handle_of(VENDORS[vendor], self._bytes.data_ptr()) or b""
        self.size = self._bytes.numel() if self.handle else 0
        """Bytes."""

    def write(self, offset: int, data: torch.Tensor) -> int:
        """Copies bytes, uint8 [size], to an offset; returns the offset behind them."""
        end = offset + data.numel()
        self._bytes[offset:end].copy_(data)
        return end
