"""Gumbel sampling: one program a row; each element computes its own Philox block."""

import torch
import triton
import triton.language as tl


@triton.jit
def gumbel_kernel(
    logits_ptr, token_ptr, row, vocab, temperature, seed, offset, BLOCK: tl.constexpr
):
    """Finds the token of one row."""
    i = tl.program_id(0).to(tl.int64)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    best_at = tl.zeros([BLOCK], tl.int32)
    for start in range(0, vocab, BLOCK):
        at = start + tl.arange(0, BLOCK)
        element = i * vocab + at
        counter = element // 4
        high = counter * 0 + offset
        w0, w1, w2, w3 = tl.philox(
            seed,
            counter.to(tl.uint32),
            (counter >> 32).to(tl.uint32),
            high.to(tl.uint32),
            (high >> 32).to(tl.uint32),
        )
        place = element % 4
        word = tl.where(place < 2, tl.where(place == 0, w0, w1), tl.where(place == 2, w2, w3))
        u = ((word >> 9).to(tl.float32) + 0.5) * (1.0 / 8388608.0)
        x = tl.load(logits_ptr + i * row + at, mask=at < vocab, other=float("-inf"))
        score = x / temperature - tl.log(-tl.log(u))
        better = score > best
        best = tl.where(better, score, best)
        best_at = tl.where(better, at, best_at)
    top = tl.max(best, axis=0)
    tl.store(token_ptr + i, tl.min(tl.where(best == top, best_at, vocab)))


def gumbel_sample(logits: torch.Tensor, temperature: float, seed: int, offset: int) -> torch.Tensor:
    """Tokens of logits, float32[rows, vocab] with any row stride."""
    rows, vocab = logits.shape
    token = torch.empty((rows,), dtype=torch.int32, device=logits.device)
    gumbel_kernel[(rows,)](
        logits, token, logits.stride(0), vocab, temperature, seed, offset, BLOCK=512
    )
    return token
