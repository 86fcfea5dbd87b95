"""Poisons the memory that PyTorch's allocator on a GPU keeps free.

An allocation of a call may get any of this memory. If it kept old bytes, the outputs of an earlier
call could pass for new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

_SMALL = 1 << 20
"""Requests up to this size (bytes) come from segments of small blocks, larger ones never do."""
_MAIN_POOL = (0, 0)


def poison_free_memory() -> None:
    """Sets all bytes that the current stream may be given next to 0xFF."""
    stream = torch.cuda.current_stream().cuda_stream
    sizes = free_pieces(torch.cuda.memory_snapshot(), stream)
    for piece in [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes]:
        piece.fill_(0xFF)


def free_pieces(segments: Iterable[Mapping[str, Any]], stream: int) -> list[int]:
    """Returns sizes (bytes) of allocations that take up all free blocks and need no new memory.

    The allocator returns the smallest block that is large enough, so that each size finds its own
    block. Blocks of graphs and of other streams are left out, as ordinary calls cannot get them.

    Args:
        segments: What `torch.cuda.memory_snapshot` returns.
        stream: The address of the stream that allocates.
    """
    sizes = []
    for segment in segments:
        if segment["stream"] != stream or tuple(segment["segment_pool_id"]) != _MAIN_POOL:
            continue
        free = [b["size"] for b in segment["blocks"] if b["state"] == "inactive"]
        if segment["segment_type"] == "small":
            free = [min(_SMALL, size - at) for size in free for at in range(0, size, _SMALL)]
        sizes += free
    return sizes
