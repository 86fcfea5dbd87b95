"""Radix sort: eight passes over digits of 4 bits, each with a count, a scan and a scatter."""

import torch
import triton
import triton.language as tl


@triton.jit
def digits(key_ptr, at, count, shift):
    """Returns the digits of keys in the order of signed numbers, 16 beyond the end."""
    key = tl.load(key_ptr + at, mask=at < count, other=0).to(tl.uint32, bitcast=True) ^ 0x80000000
    return tl.where(at < count, ((key >> shift) & 15).to(tl.int32), 16)


@triton.jit
def count_kernel(key_ptr, counts_ptr, count, blocks, shift, BLOCK: tl.constexpr):
    """Counts the digits of one block."""
    block = tl.program_id(0)
    digit = digits(key_ptr, block * BLOCK + tl.arange(0, BLOCK), count, shift)
    for d in range(16):
        tl.store(counts_ptr + d * blocks + block, tl.sum((digit == d).to(tl.int32), axis=0))


@triton.jit
def scan_kernel(counts_ptr, starts_ptr, size, BLOCK: tl.constexpr):
    """Adds up the counts before each count."""
    before = 0
    for start in range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        counts = tl.load(counts_ptr + at, mask=at < size, other=0)
        tl.store(starts_ptr + at, before + tl.cumsum(counts, axis=0) - counts, mask=at < size)
        before += tl.sum(counts, axis=0)


@triton.jit
def scatter_kernel(
    key_ptr,
    value_ptr,
    starts_ptr,
    new_key_ptr,
    new_value_ptr,
    count,
    blocks,
    shift,
    BLOCK: tl.constexpr,
):
    """Moves the pairs of one block."""
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    digit = digits(key_ptr, at, count, shift)
    target = tl.zeros([BLOCK], tl.int32)
    for d in range(16):
        mine = digit == d
        rank = tl.cumsum(mine.to(tl.int32), axis=0) - 1
        target = tl.where(mine, tl.load(starts_ptr + d * blocks + block) + rank, target)
    key = tl.load(key_ptr + at, mask=at < count)
    value = tl.load(value_ptr + at, mask=at < count)
    tl.store(new_key_ptr + target, key, mask=at < count)
    tl.store(new_value_ptr + target, value, mask=at < count)


def sort_pairs(key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sorted pairs of key and value, int32[count]."""
    count = key.shape[0]
    blocks = triton.cdiv(count, 1024)
    counts, starts = (
        torch.empty((16 * blocks,), dtype=torch.int32, device=key.device) for _ in range(2)
    )
    spare = (torch.empty_like(key), torch.empty_like(value))
    out = (torch.empty_like(key), torch.empty_like(value))
    source = (key, value)
    for i in range(8):
        target = out if i % 2 == 1 else spare
        shift = 4 * i
        count_kernel[(blocks,)](source[0], counts, count, blocks, shift, BLOCK=1024)
        scan_kernel[(1,)](counts, starts, 16 * blocks, BLOCK=1024)
        scatter_kernel[(blocks,)](*source, starts, *target, count, blocks, shift, BLOCK=1024)
        source = target
    return out
