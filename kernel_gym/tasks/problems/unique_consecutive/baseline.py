"""Runs of equal neighbours: counts by block, a scan of them, then runs are written and measured."""

import torch
import triton
import triton.language as tl


@triton.jit
def heads(x_ptr, at, count):
    """Returns elements and 1 where a run starts."""
    x = tl.load(x_ptr + at, mask=at < count, other=0)
    before = tl.load(x_ptr + at - 1, mask=(at > 0) & (at < count), other=0)
    return x, (((at == 0) | (x != before)) & (at < count)).to(tl.int32)


@triton.jit
def count_kernel(x_ptr, counts_ptr, count, BLOCK: tl.constexpr):
    """Counts the runs that start in one block."""
    _, head = heads(x_ptr, tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), count)
    tl.store(counts_ptr + tl.program_id(0), tl.sum(head, axis=0))


@triton.jit
def scan_kernel(counts_ptr, starts_ptr, number_ptr, blocks, BLOCK: tl.constexpr):
    """Adds up the counts before each block, and all of them."""
    before = 0
    for start in range(0, blocks, BLOCK):
        at = start + tl.arange(0, BLOCK)
        counts = tl.load(counts_ptr + at, mask=at < blocks, other=0)
        tl.store(starts_ptr + at, before + tl.cumsum(counts, axis=0) - counts, mask=at < blocks)
        before += tl.sum(counts, axis=0)
    tl.store(number_ptr, before)


@triton.jit
def write_kernel(x_ptr, starts_ptr, value_ptr, first_ptr, inverse_ptr, count, BLOCK: tl.constexpr):
    """Writes the run of each element, and value and place of each run's first element."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, head = heads(x_ptr, at, count)
    run = tl.load(starts_ptr + tl.program_id(0)) + tl.cumsum(head, axis=0) - 1
    tl.store(inverse_ptr + at, run, mask=at < count)
    tl.store(value_ptr + run, x, mask=head == 1)
    tl.store(first_ptr + run, at, mask=head == 1)


@triton.jit
def measure_kernel(first_ptr, number_ptr, value_ptr, length_ptr, count, BLOCK: tl.constexpr):
    """Writes the length of each run, and zeros beyond the last one."""
    run = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    number = tl.load(number_ptr)
    first = tl.load(first_ptr + run, mask=run < number, other=0)
    after = tl.load(first_ptr + run + 1, mask=run + 1 < number, other=0)
    after = tl.where(run + 1 < number, after, count)
    tl.store(length_ptr + run, tl.where(run < number, after - first, 0), mask=run < count)
    tl.store(value_ptr + run, tl.zeros([BLOCK], tl.int32), mask=(run >= number) & (run < count))


def unique_consecutive(
    x: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Runs of x, int32[count]."""
    count = x.shape[0]
    blocks = triton.cdiv(count, 1024)
    value, length, inverse, first = (torch.empty_like(x) for _ in range(4))
    counts, starts = (torch.empty((blocks,), dtype=torch.int32, device=x.device) for _ in range(2))
    number = torch.empty((1,), dtype=torch.int32, device=x.device)
    count_kernel[(blocks,)](x, counts, count, BLOCK=1024)
    scan_kernel[(1,)](counts, starts, number, blocks, BLOCK=1024)
    write_kernel[(blocks,)](x, starts, value, first, inverse, count, BLOCK=1024)
    measure_kernel[(blocks,)](first, number, value, length, count, BLOCK=1024)
    return value, length, inverse, number
