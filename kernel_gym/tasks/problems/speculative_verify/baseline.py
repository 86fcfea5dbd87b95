"""Verification of drafts: one program a row; a walk over steps, then one over the vocabulary."""

import torch
import triton
import triton.language as tl


@triton.jit
def verify_kernel(
    drafted_ptr,
    draft_ptr,
    target_ptr,
    uniform_ptr,
    noise_ptr,
    token_ptr,
    count_ptr,
    drafted_row,
    draft_row,
    target_row,
    uniform_row,
    noise_row,
    steps,
    vocab,
    BLOCK: tl.constexpr,
):
    """Verifies one row."""
    row = tl.program_id(0).to(tl.int64)
    count = 0
    open = 1
    for t in range(0, steps):
        drafted = tl.load(drafted_ptr + row * drafted_row + t)
        p = tl.load(draft_ptr + (row * steps + t) * draft_row + drafted)
        q = tl.load(target_ptr + (row * (steps + 1) + t) * target_row + drafted)
        chance = tl.load(uniform_ptr + row * uniform_row + t) * p
        open = tl.where(chance <= q, open, 0)
        count += open
    target = target_ptr + (row * (steps + 1) + count) * target_row
    draft = draft_ptr + (row * steps + tl.minimum(count, steps - 1)) * draft_row
    best = tl.full([BLOCK], -1.0, tl.float32)
    best_at = tl.zeros([BLOCK], tl.int32)
    for start in range(0, vocab, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < vocab
        q = tl.load(target + at, mask=inside, other=0.0)
        p = tl.load(draft + at, mask=inside & (count < steps), other=0.0)
        noise = tl.load(noise_ptr + row * noise_row + at, mask=inside, other=1.0)
        score = tl.where(inside, tl.maximum(q - p, 0.0) / noise, -1.0)
        better = score > best
        best = tl.where(better, score, best)
        best_at = tl.where(better, at, best_at)
    top = tl.max(best, axis=0)
    tl.store(token_ptr + row, tl.min(tl.where(best == top, best_at, vocab)))
    tl.store(count_ptr + row, count)


def speculative_verify(
    drafted: torch.Tensor,
    draft: torch.Tensor,
    target: torch.Tensor,
    uniform: torch.Tensor,
    noise: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and counts; rows of all tensors may be padded."""
    rows, steps, vocab = draft.shape
    token = torch.empty((rows,), dtype=torch.int32, device=draft.device)
    count = torch.empty((rows,), dtype=torch.int32, device=draft.device)
    verify_kernel[(rows,)](
        drafted,
        draft,
        target,
        uniform,
        noise,
        token,
        count,
        drafted.stride(0),
        draft.stride(1),
        target.stride(1),
        uniform.stride(0),
        noise.stride(0),
        steps,
        vocab,
        BLOCK=1024,
    )
    return token, count
