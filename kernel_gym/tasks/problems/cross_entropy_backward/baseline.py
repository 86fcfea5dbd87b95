"""Cross entropy backward: one program a row, a running maximum and sum, then the gradient."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_backward_kernel(
    logits_ptr,
    target_ptr,
    grad_ptr,
    out_ptr,
    logits_row,
    vocab,
    smoothing,
    ignore_index,
    BLOCK: tl.constexpr,
):
    """Computes one row of the gradient."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    target = tl.load(target_ptr + row)
    grad = tl.where(target == ignore_index, 0.0, tl.load(grad_ptr + row))
    x_row = logits_ptr + row * logits_row

    top = tl.full([BLOCK], -1e38, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, vocab, BLOCK):
        at = start + lane
        x = tl.load(x_row + at, mask=at < vocab, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(top, x)
        total = total * tl.exp(top - higher) + tl.exp(x - higher)
        top = higher
    row_max = tl.max(top, axis=0)
    row_sum = tl.sum(total * tl.exp(top - row_max), axis=0)

    for start in range(0, vocab, BLOCK):
        at = start + lane
        x = tl.load(x_row + at, mask=at < vocab, other=float("-inf")).to(tl.float32)
        goal = smoothing / vocab + tl.where(at == target, 1.0 - smoothing, 0.0)
        out = grad * (tl.exp(x - row_max) / row_sum - goal)
        tl.store(out_ptr + row * vocab + at, out.to(tl.float16), mask=at < vocab)


def cross_entropy_backward(
    logits: torch.Tensor,
    target: torch.Tensor,
    grad: torch.Tensor,
    smoothing: float,
    ignore_index: int,
) -> torch.Tensor:
    """Gradient for logits, float16[rows, vocab] with any row stride."""
    rows, vocab = logits.shape
    out = torch.empty((rows, vocab), dtype=logits.dtype, device=logits.device)
    cross_entropy_backward_kernel[(rows,)](
        logits,
        target,
        grad,
        out,
        logits.stride(0),
        vocab,
        smoothing,
        ignore_index,
        BLOCK=2048,
        num_warps=8,
    )
    return out
