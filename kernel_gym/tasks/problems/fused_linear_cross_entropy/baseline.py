"""Linear cross entropy: one program a block of rows walks the vocabulary with a running sum."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_cross_entropy_kernel(
    x_ptr,
    weight_ptr,
    target_ptr,
    loss_ptr,
    lse_ptr,
    x_row,
    weight_row,
    rows,
    hidden,
    vocab,
    ignore_index,
    ROWS: tl.constexpr,
    WORDS: tl.constexpr,
    PART: tl.constexpr,
):
    """Computes the losses of ROWS rows."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    target = tl.load(target_ptr + row, mask=row < rows, other=0)
    top = tl.full([ROWS], -1e38, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mine = tl.zeros([ROWS], tl.float32)
    for first in range(0, vocab, WORDS):
        word = first + tl.arange(0, WORDS)
        logits = tl.zeros([ROWS, WORDS], tl.float32)
        for start in range(0, hidden, PART):
            at = start + tl.arange(0, PART)
            x = tl.load(
                x_ptr + row[:, None].to(tl.int64) * x_row + at[None, :],
                mask=(row[:, None] < rows) & (at[None, :] < hidden),
                other=0.0,
            )
            weight = tl.load(
                weight_ptr + word[None, :].to(tl.int64) * weight_row + at[:, None],
                mask=(word[None, :] < vocab) & (at[:, None] < hidden),
                other=0.0,
            )
            logits = tl.dot(x, weight, logits)
        logits = tl.where(word[None, :] < vocab, logits, float("-inf"))
        mine += tl.sum(tl.where(word[None, :] == target[:, None], logits, 0.0), axis=1)
        higher = tl.maximum(top, tl.max(logits, axis=1))
        weights = tl.exp(logits - higher[:, None])
        total = total * tl.exp(top - higher) + tl.sum(weights, axis=1)
        top = higher
    lse = top + tl.log(total)
    loss = tl.where(target == ignore_index, 0.0, lse - mine)
    tl.store(lse_ptr + row, lse, mask=row < rows)
    tl.store(loss_ptr + row, loss, mask=row < rows)


def fused_linear_cross_entropy(
    x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, ignore_index: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Losses for x and weight, bfloat16 matrices with any row stride."""
    rows, hidden = x.shape
    loss = torch.empty((rows,), dtype=torch.float32, device=x.device)
    lse = torch.empty((rows,), dtype=torch.float32, device=x.device)
    linear_cross_entropy_kernel[(triton.cdiv(rows, 16),)](
        x,
        weight,
        target,
        loss,
        lse,
        x.stride(0),
        weight.stride(0),
        rows,
        hidden,
        weight.shape[0],
        ignore_index,
        ROWS=16,
        WORDS=128,
        PART=32,
    )
    return loss, lse
