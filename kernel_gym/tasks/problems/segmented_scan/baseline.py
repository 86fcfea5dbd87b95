"""Segmented scan: scans of blocks, a scan of the blocks' ends, then the carries are added."""

import torch
import triton
import triton.language as tl


@triton.jit
def combine(mark_a, sum_a, mark_b, sum_b):
    """Joins two neighbouring parts."""
    return mark_a | mark_b, tl.where(mark_b != 0, sum_b, sum_a + sum_b)


@triton.jit
def block_kernel(x_ptr, head_ptr, out_ptr, mark_ptr, end_ptr, count, BLOCK: tl.constexpr):
    """Scans one block and keeps its end."""
    lane = tl.arange(0, BLOCK)
    at = tl.program_id(0).to(tl.int64) * BLOCK + lane
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    mark = (tl.load(head_ptr + at, mask=at < count, other=0) != 0).to(tl.int32)
    marks, sums = tl.associative_scan((mark, x), 0, combine)
    tl.store(out_ptr + at, sums, mask=at < count)
    last = lane == BLOCK - 1
    tl.store(mark_ptr + tl.program_id(0), tl.sum(tl.where(last, marks, 0), axis=0))
    tl.store(end_ptr + tl.program_id(0), tl.sum(tl.where(last, sums, 0.0), axis=0))


@triton.jit
def carry_kernel(mark_ptr, end_ptr, carry_ptr, blocks, BLOCK: tl.constexpr):
    """Scans the ends of all blocks; carry[b] is the running sum at the end of block b."""
    lane = tl.arange(0, BLOCK)
    carry = 0.0
    for start in range(0, blocks, BLOCK):
        at = start + lane
        mark = tl.load(mark_ptr + at, mask=at < blocks, other=0)
        end = tl.load(end_ptr + at, mask=at < blocks, other=0.0)
        marks, sums = tl.associative_scan((mark, end), 0, combine)
        sums = tl.where(marks != 0, sums, sums + carry)
        tl.store(carry_ptr + at, sums, mask=at < blocks)
        carry = tl.sum(tl.where(lane == BLOCK - 1, sums, 0.0), axis=0)


@triton.jit
def add_kernel(head_ptr, carry_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Adds the carry of the block before to the elements before the first mark."""
    block = tl.program_id(0) + 1
    at = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mark = (tl.load(head_ptr + at, mask=at < count, other=0) != 0).to(tl.int32)
    open = (tl.cumsum(mark, axis=0) == 0) & (at < count)
    out = tl.load(out_ptr + at, mask=open, other=0.0)
    tl.store(out_ptr + at, out + tl.load(carry_ptr + block - 1), mask=open)


def segmented_scan(x: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
    """Sums of x, float32[count], between marks."""
    count = x.shape[0]
    blocks = triton.cdiv(count, 1024)
    out = torch.empty_like(x)
    mark = torch.empty((blocks,), dtype=torch.int32, device=x.device)
    end = torch.empty((blocks,), dtype=torch.float32, device=x.device)
    carry = torch.empty((blocks,), dtype=torch.float32, device=x.device)
    block_kernel[(blocks,)](x, head, out, mark, end, count, BLOCK=1024)
    if blocks > 1:
        carry_kernel[(1,)](mark, end, carry, blocks, BLOCK=1024)
        add_kernel[(blocks - 1,)](head, carry, out, count, BLOCK=1024)
    return out
