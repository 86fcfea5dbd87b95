"""Philox-4x32 with ten rounds, the generator that problems with random numbers state.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import torch

_LOW = 0xFFFFFFFF
_FACTORS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85


def philox_words(
    blocks: int, seed: int, offset: int, device: torch.device | None = None
) -> torch.Tensor:
    """The random words of the counters 0 .. blocks - 1.

    Args:
        blocks: how many counters; each gives four words.
        seed: the key, 64 bits, low half first.
        offset: the upper 64 bits of every counter; the lower ones are its number.
        device: where to compute.

    Returns:
        int64[4 * blocks], each `0 <= word < 2^32`, the four of a counter side by side.
    """
    block = torch.arange(blocks, dtype=torch.int64, device=device)
    a, b = block & _LOW, block >> 32
    c, d = torch.full_like(block, offset & _LOW), torch.full_like(block, offset >> 32)
    key = [seed & _LOW, seed >> 32]
    for _ in range(10):
        left, right = a * _FACTORS[0], c * _FACTORS[1]
        a, b = (right >> 32 & _LOW) ^ b ^ key[0], right & _LOW
        c, d = (left >> 32 & _LOW) ^ d ^ key[1], left & _LOW
        key = [key[i] + _WEYL[i] & _LOW for i in range(2)]
    return torch.stack([a, b, c, d], dim=1).reshape(-1)
