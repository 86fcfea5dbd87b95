"""Sorting by expert: count the choices of each chunk, sum up by expert, place each chunk."""

import torch
import triton
import triton.language as tl


@triton.jit
def hits_at(expert_ptr, start, count, top_k, expert_row, PART: tl.constexpr, EXPERTS: tl.constexpr):
    """Which experts PART choices belong to, int32[PART, EXPERTS]."""
    at = start + tl.arange(0, PART)
    expert_at = (at // top_k).to(tl.int64) * expert_row + at % top_k
    expert = tl.load(expert_ptr + expert_at, mask=at < count, other=-1)
    return (expert[:, None] == tl.arange(0, EXPERTS)[None, :]).to(tl.int32)


@triton.jit
def count_kernel(
    expert_ptr,
    counts_ptr,
    count,
    top_k,
    expert_row,
    chunk,
    PART: tl.constexpr,
    EXPERTS: tl.constexpr,
):
    """Counts the choices of each expert in one chunk."""
    mine = tl.program_id(0)
    total = tl.zeros([EXPERTS], tl.int32)
    for start in range(mine * chunk, mine * chunk + chunk, PART):
        hits = hits_at(expert_ptr, start, count, top_k, expert_row, PART, EXPERTS)
        total += tl.sum(hits, axis=0)
    tl.store(counts_ptr + mine * EXPERTS + tl.arange(0, EXPERTS), total)


@triton.jit
def sum_kernel(counts_ptr, padded_ptr, chunks, block, CHUNKS: tl.constexpr, EXPERTS: tl.constexpr):
    """Turns the counts of one expert into sums of the chunks before; pads its count."""
    mine = tl.program_id(0)
    at = tl.arange(0, CHUNKS)
    counts = tl.load(counts_ptr + at * EXPERTS + mine, mask=at < chunks, other=0)
    before = tl.cumsum(counts, axis=0) - counts
    tl.store(counts_ptr + at * EXPERTS + mine, before, mask=at < chunks)
    tl.store(padded_ptr + mine, (tl.sum(counts, axis=0) + block - 1) // block * block)


@triton.jit
def place_kernel(
    expert_ptr,
    counts_ptr,
    padded_ptr,
    order_ptr,
    owner_ptr,
    total_ptr,
    count,
    top_k,
    expert_row,
    chunk,
    chunks,
    experts,
    block,
    PART: tl.constexpr,
    EXPERTS: tl.constexpr,
):
    """Writes the choices of one chunk in order, and the name of one expert on its blocks."""
    mine = tl.program_id(0)
    lane = tl.arange(0, EXPERTS)
    padded = tl.load(padded_ptr + lane, mask=lane < experts, other=0)
    first = tl.cumsum(padded, axis=0) - padded
    tl.store(total_ptr, tl.sum(padded, axis=0), mask=mine == 0)
    my_first = tl.sum(tl.where(lane == mine, first, 0), axis=0) // block
    my_blocks = tl.sum(tl.where(lane == mine, padded, 0), axis=0) // block
    for row in range(my_first, my_first + my_blocks):
        tl.store(owner_ptr + row, mine)
    place = first + tl.load(counts_ptr + mine * EXPERTS + lane, mask=mine < chunks, other=0)
    for start in range(mine * chunk, min(mine * chunk + chunk, count), PART):
        hits = hits_at(expert_ptr, start, count, top_k, expert_row, PART, EXPERTS)
        rank = tl.cumsum(hits, axis=0) - 1 + place[None, :]
        at = start + tl.arange(0, PART)
        tl.store(order_ptr + tl.sum(rank * hits, axis=1), at, mask=at < count)
        place += tl.sum(hits, axis=0)


def moe_align_sort(
    expert: torch.Tensor, experts: int, block: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Order, block owners and used length for expert, int32[tokens, top_k], any row stride."""
    tokens, top_k = expert.shape
    count = tokens * top_k
    blocks = triton.cdiv(count + experts * (block - 1), block)
    part, most = 32, 256
    chunk = triton.cdiv(triton.cdiv(count, most), part) * part
    chunks = triton.cdiv(count, chunk)
    lanes = triton.next_power_of_2(experts)
    counts = torch.empty((chunks, lanes), dtype=torch.int32, device=expert.device)
    padded = torch.empty((experts,), dtype=torch.int32, device=expert.device)
    order = torch.full((blocks * block,), count, dtype=torch.int32, device=expert.device)
    owner = torch.full((blocks,), -1, dtype=torch.int32, device=expert.device)
    total = torch.empty((1,), dtype=torch.int32, device=expert.device)
    row = expert.stride(0)
    count_kernel[(chunks,)](expert, counts, count, top_k, row, chunk, PART=part, EXPERTS=lanes)
    sum_kernel[(experts,)](counts, padded, chunks, block, CHUNKS=most, EXPERTS=lanes, num_warps=1)
    place_kernel[(max(chunks, experts),)](
        expert,
        counts,
        padded,
        order,
        owner,
        total,
        count,
        top_k,
        row,
        chunk,
        chunks,
        experts,
        block,
        PART=part,
        EXPERTS=lanes,
    )
    return order, owner, total
