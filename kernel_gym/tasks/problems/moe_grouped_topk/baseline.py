"""Grouped routing: one program a token; it finds the best, strikes it out, and starts again."""

import torch
import triton
import triton.language as tl


@triton.jit
def grouped_topk_kernel(
    score_ptr,
    bias_ptr,
    weight_ptr,
    expert_ptr,
    score_row,
    groups,
    size,
    keep,
    top_k,
    factor,
    GROUPS: tl.constexpr,
    SIZE: tl.constexpr,
    CHOICES: tl.constexpr,
):
    """Keeps the ranks of one token in registers, a row a group."""
    token = tl.program_id(0).to(tl.int64)
    group = tl.arange(0, GROUPS)
    member = tl.arange(0, SIZE)
    choice = tl.arange(0, CHOICES)
    at = group[:, None] * size + member[None, :]
    inside = (group[:, None] < groups) & (member[None, :] < size)
    score = tl.load(score_ptr + token * score_row + at, mask=inside, other=0.0)
    bias = tl.load(bias_ptr + at, mask=inside, other=0.0)
    rank = tl.where(inside, score + bias, float("-inf"))

    first = tl.max(rank, axis=1)
    first_at = tl.min(tl.where(rank == first[:, None], member[None, :], SIZE), axis=1)
    others = tl.where(member[None, :] == first_at[:, None], float("-inf"), rank)
    worth = first + tl.max(others, axis=1)
    kept = tl.zeros([GROUPS], tl.int32)
    for _ in range(keep):
        top = tl.max(worth, axis=0)
        best = tl.min(tl.where(worth == top, group, GROUPS), axis=0)
        kept = tl.where(group == best, 1, kept)
        worth = tl.where(group == best, float("-inf"), worth)
    rank = tl.where(kept[:, None] == 1, rank, float("-inf"))

    weight = tl.zeros([CHOICES], tl.float32)
    expert = tl.zeros([CHOICES], tl.int32)
    for i in range(top_k):
        top = tl.max(tl.max(rank, axis=1), axis=0)
        best = tl.min(tl.min(tl.where(rank == top, at, GROUPS * SIZE), axis=1), axis=0)
        chosen = tl.sum(tl.sum(tl.where(at == best, tl.where(inside, score, 0.0), 0.0), axis=1), 0)
        weight = tl.where(choice == i, chosen, weight)
        expert = tl.where(choice == i, best, expert)
        rank = tl.where(at == best, float("-inf"), rank)
    weight = weight * factor / tl.sum(weight, axis=0)
    tl.store(weight_ptr + token * top_k + choice, weight, mask=choice < top_k)
    tl.store(expert_ptr + token * top_k + choice, expert, mask=choice < top_k)


def moe_grouped_topk(
    score: torch.Tensor, bias: torch.Tensor, groups: int, keep: int, top_k: int, factor: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and experts of each row of score, float32[tokens, experts], any row stride."""
    tokens, experts = score.shape
    weight = torch.empty((tokens, top_k), dtype=torch.float32, device=score.device)
    expert = torch.empty((tokens, top_k), dtype=torch.int32, device=score.device)
    size = experts // groups
    grouped_topk_kernel[(tokens,)](
        score,
        bias,
        weight,
        expert,
        score.stride(0),
        groups,
        size,
        keep,
        top_k,
        factor,
        GROUPS=triton.next_power_of_2(groups),
        SIZE=triton.next_power_of_2(size),
        CHOICES=8,
        num_warps=1,
    )
    return weight, expert
