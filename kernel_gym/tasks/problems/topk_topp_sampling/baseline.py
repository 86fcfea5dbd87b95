"""Sampling: one program a row; it looks for the next best logit until it has top_k of them."""

import torch
import triton
import triton.language as tl


@triton.jit
def sampling_kernel(
    logits_ptr,
    top_k_ptr,
    top_p_ptr,
    uniform_ptr,
    token_ptr,
    logits_row,
    vocab,
    MOST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Reads the row once for each of its top_k best logits."""
    row = tl.program_id(0).to(tl.int64)
    top_k = tl.load(top_k_ptr + row)
    lane = tl.arange(0, BLOCK)
    choice = tl.arange(0, MOST)
    best = tl.full([MOST], float("-inf"), tl.float32)
    token = tl.zeros([MOST], tl.int32)
    last = float("inf")
    last_at = -1
    for i in range(0, top_k):
        top = tl.full([BLOCK], float("-inf"), tl.float32)
        top_at = tl.full([BLOCK], 2147483647, tl.int32)
        for start in range(0, vocab, BLOCK):
            at = start + lane
            x = tl.load(logits_ptr + row * logits_row + at, mask=at < vocab, other=float("-inf"))
            later = (x < last) | ((x == last) & (at > last_at))
            better = later & (x > top)
            top = tl.where(better, x, top)
            top_at = tl.where(better, at, top_at)
        last = tl.max(top, axis=0)
        last_at = tl.min(tl.where(top == last, top_at, 2147483647), axis=0)
        best = tl.where(choice == i, last, best)
        token = tl.where(choice == i, last_at, token)

    shares = tl.exp(best - tl.max(best, axis=0))
    shares = shares / tl.sum(shares, axis=0)
    sums = tl.cumsum(shares, axis=0)
    inside = choice < top_k
    kept = tl.sum((inside & (sums < tl.load(top_p_ptr + row))).to(tl.int32), axis=0)
    kept = tl.minimum(kept, top_k - 1)
    total = tl.sum(tl.where(choice == kept, sums, 0.0), axis=0)
    target = tl.load(uniform_ptr + row) * total
    chosen = tl.sum((inside & (sums <= target)).to(tl.int32), axis=0)
    chosen = tl.minimum(chosen, kept)
    tl.store(token_ptr + row, tl.sum(tl.where(choice == chosen, token, 0), axis=0))


def topk_topp_sampling(
    logits: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor, uniform: torch.Tensor
) -> torch.Tensor:
    """Token of each row of logits, float32[rows, vocab] with any row stride."""
    rows, vocab = logits.shape
    token = torch.empty((rows,), dtype=torch.int32, device=logits.device)
    sampling_kernel[(rows,)](
        logits, top_k, top_p, uniform, token, logits.stride(0), vocab, MOST=64, BLOCK=512
    )
    return token
