"""Sampling: one program a row, which reads it once and keeps the best tokens in order."""

import torch
import triton
import triton.language as tl


@triton.jit
def merged(best, token, x, at, top_k, MOST: tl.constexpr):
    """The best top_k of those kept so far and of a strip, largest first, early tokens first."""
    choice = tl.arange(0, MOST)
    new_best = tl.full([MOST], float("-inf"), tl.float32)
    new_token = tl.zeros([MOST], tl.int32)
    kept = 0  # how many of those before the strip are taken
    for i in range(0, top_k):
        old = tl.max(tl.where(choice == kept, best, float("-inf")), axis=0)
        new = tl.max(x, axis=0)
        earlier = old >= new
        first = tl.min(tl.where(x == new, at, 2147483647), axis=0)
        old_token = tl.sum(tl.where(choice == kept, token, 0), axis=0)
        new_best = tl.where(choice == i, tl.maximum(old, new), new_best)
        new_token = tl.where(choice == i, tl.where(earlier, old_token, first), new_token)
        x = tl.where((at == first) & (earlier == 0), float("-inf"), x)
        kept += earlier.to(tl.int32)
    return new_best, new_token


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
    """Finds the top_k best logits of a row strip by strip, then inverts their distribution."""
    row = tl.program_id(0).to(tl.int64)
    top_k = tl.load(top_k_ptr + row)
    choice = tl.arange(0, MOST)
    best = tl.full([MOST], float("-inf"), tl.float32)
    token = tl.zeros([MOST], tl.int32)
    for start in range(0, vocab, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * logits_row + at, mask=at < vocab, other=float("-inf"))
        best, token = merged(best, token, x, at, top_k, MOST)
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
    block = min(4096, triton.next_power_of_2(vocab))
    sampling_kernel[(rows,)](
        logits, top_k, top_p, uniform, token, logits.stride(0), vocab, MOST=64, BLOCK=block
    )
    return token
