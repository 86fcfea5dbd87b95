"""Memory on the GPU by which the judge hands inputs to its launchers, and gets answers.

The judge draws inputs on the GPU, and compares answers there. A way through the host takes longer
than most calls. The launcher maps this memory, so a kernel that finds it can read and change it. So
it holds what belongs to one call at a time: the judge writes inputs again before each call, and the
launcher copies answers after it.
"""

from __future__ import annotations

import torch

from kernel_gym.launcher.driver import handle_of
from kernel_gym.launcher.vendors import VENDORS

STAGING_BYTES = 512 << 20
"""A call that needs more goes through the host."""


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

    def write(self, offset: int, data: torch.Tensor) -> None:
        """Copies bytes, uint8 [size], to an offset."""
        self._bytes[offset : offset + data.numel()].copy_(data)

    def read(self, offset: int, size: int) -> torch.Tensor:
        """Returns a copy of some bytes, uint8 [size]."""
        return self._bytes[offset : offset + size].clone()
