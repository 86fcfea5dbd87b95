"""Sorting by expert: count, sum up, place; a program an expert reads all choices each time."""

import torch
import triton
import triton.language as tl


@triton.jit
def count_kernel(expert_ptr, counts_ptr, count, top_k, expert_row, BLOCK: tl.constexpr):
    """Counts the choices of one expert."""
    mine = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.int32)
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        expert_at = (at // top_k).to(tl.int64) * expert_row + at % top_k
        expert = tl.load(expert_ptr + expert_at, mask=at < count, other=-1)
        total += (expert == mine).to(tl.int32)
    tl.store(counts_ptr + mine, tl.sum(total, axis=0))


@triton.jit
def ends_kernel(counts_ptr, ends_ptr, total_ptr, experts, block, EXPERTS: tl.constexpr):
    """Sums the padded counts up."""
    at = tl.arange(0, EXPERTS)
    counts = tl.load(counts_ptr + at, mask=at < experts, other=0)
    padded = (counts + block - 1) // block * block
    tl.store(ends_ptr + at, tl.cumsum(padded, axis=0), mask=at < experts)
    tl.store(total_ptr, tl.sum(padded, axis=0))


@triton.jit
def place_kernel(
    expert_ptr,
    ends_ptr,
    order_ptr,
    owner_ptr,
    count,
    top_k,
    expert_row,
    block,
    BLOCK: tl.constexpr,
):
    """Writes the choices of one expert in order, and its name on its blocks."""
    mine = tl.program_id(0)
    place = tl.load(ends_ptr + mine - 1, mask=mine > 0, other=0)
    end = tl.load(ends_ptr + mine)
    for row in range(place // block, end // block):
        tl.store(owner_ptr + row, mine)
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        expert_at = (at // top_k).to(tl.int64) * expert_row + at % top_k
        expert = tl.load(expert_ptr + expert_at, mask=at < count, other=-1)
        hit = (expert == mine).to(tl.int32)
        rank = tl.cumsum(hit, axis=0) - 1
        tl.store(order_ptr + place + rank, at, mask=hit == 1)
        place += tl.sum(hit, axis=0)


def moe_align_sort(
    expert: torch.Tensor, experts: int, block: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Order, block owners and used length for expert, int32[tokens, top_k], any row stride."""
    tokens, top_k = expert.shape
    count = tokens * top_k
    blocks = triton.cdiv(count + experts * (block - 1), block)
    counts = torch.empty((experts,), dtype=torch.int32, device=expert.device)
    ends = torch.empty((experts,), dtype=torch.int32, device=expert.device)
    order = torch.full((blocks * block,), count, dtype=torch.int32, device=expert.device)
    owner = torch.full((blocks,), -1, dtype=torch.int32, device=expert.device)
    total = torch.empty((1,), dtype=torch.int32, device=expert.device)
    row = expert.stride(0)
    count_kernel[(experts,)](expert, counts, count, top_k, row, BLOCK=256)
    ends_kernel[(1,)](
        counts, ends, total, experts, block, EXPERTS=triton.next_power_of_2(experts), num_warps=1
    )
    place_kernel[(experts,)](expert, ends, order, owner, count, top_k, row, block, BLOCK=256)
    return order, owner, total
