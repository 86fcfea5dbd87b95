"""Min-p sampling: one program a row; maximum, total of kept weights, walk to the token."""

import torch
import triton
import triton.language as tl


@triton.jit
def min_p_kernel(
    logits_ptr, uniform_ptr, token_ptr, row, vocab, temperature, min_p, BLOCK: tl.constexpr
):
    """Draws the token of one row."""
    i = tl.program_id(0).to(tl.int64)
    base = logits_ptr + i * row
    at = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, vocab, BLOCK):
        inside = start + at < vocab
        top = tl.maximum(top, tl.load(base + start + at, mask=inside, other=float("-inf")))
    most = tl.max(top, axis=0)
    part = tl.zeros([BLOCK], tl.float32)
    for start in range(0, vocab, BLOCK):
        x = tl.load(base + start + at, mask=start + at < vocab, other=float("-inf"))
        weight = tl.exp((x - most) / temperature)
        part += tl.where(weight >= min_p, weight, 0.0)
    target = tl.load(uniform_ptr + i) * tl.sum(part, axis=0)
    before = 0.0
    token = vocab
    last = 0
    for start in range(0, vocab, BLOCK):
        x = tl.load(base + start + at, mask=start + at < vocab, other=float("-inf"))
        weight = tl.exp((x - most) / temperature)
        kept = weight >= min_p
        weight = tl.where(kept, weight, 0.0)
        sums = before + tl.cumsum(weight, axis=0)
        token = tl.minimum(token, tl.min(tl.where(kept & (sums > target), start + at, vocab)))
        last = tl.maximum(last, tl.max(tl.where(kept, start + at, 0)))
        before += tl.sum(weight, axis=0)
    tl.store(token_ptr + i, tl.minimum(token, last))


def min_p_sampling(
    logits: torch.Tensor, uniform: torch.Tensor, temperature: float, min_p: float
) -> torch.Tensor:
    """Tokens of logits, float32[rows, vocab] with any row stride."""
    rows, vocab = logits.shape
    token = torch.empty((rows,), dtype=torch.int32, device=logits.device)
    min_p_kernel[(rows,)](
        logits, uniform, token, logits.stride(0), vocab, temperature, min_p, BLOCK=1024
    )
    return token
