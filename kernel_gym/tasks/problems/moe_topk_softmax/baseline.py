"""Routing: one program a token finds the largest logit, strikes it out, and starts again."""

import torch
import triton
import triton.language as tl


@triton.jit
def topk_kernel(
    logits_ptr,
    weight_ptr,
    expert_ptr,
    logits_row,
    experts,
    top_k,
    EXPERTS: tl.constexpr,
    CHOICES: tl.constexpr,
):
    """Keeps the logits of one token in registers."""
    token = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, EXPERTS)
    choice = tl.arange(0, CHOICES)
    logits = tl.load(logits_ptr + token * logits_row + at, mask=at < experts, other=float("-inf"))
    best = tl.full([CHOICES], float("-inf"), tl.float32)
    expert = tl.zeros([CHOICES], tl.int32)
    for i in range(0, top_k):
        top = tl.max(logits, axis=0)
        place = tl.min(tl.where(logits == top, at, EXPERTS), axis=0)
        best = tl.where(choice == i, top, best)
        expert = tl.where(choice == i, place, expert)
        logits = tl.where(at == place, float("-inf"), logits)
    weight = tl.exp(best - tl.max(best, axis=0))
    weight = weight / tl.sum(weight, axis=0)
    tl.store(weight_ptr + token * top_k + choice, weight, mask=choice < top_k)
    tl.store(expert_ptr + token * top_k + choice, expert, mask=choice < top_k)


def moe_topk_softmax(logits: torch.Tensor, top_k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and experts of each row of logits, float32[tokens, experts], any row stride."""
    tokens, experts = logits.shape
    weight = torch.empty((tokens, top_k), dtype=torch.float32, device=logits.device)
    expert = torch.empty((tokens, top_k), dtype=torch.int32, device=logits.device)
    topk_kernel[(tokens,)](
        logits,
        weight,
        expert,
        logits.stride(0),
        experts,
        top_k,
        EXPERTS=triton.next_power_of_2(experts),
        CHOICES=16,
        num_warps=1,
    )
    return weight, expert
