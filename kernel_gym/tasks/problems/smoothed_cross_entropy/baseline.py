"""Smoothed cross entropy: one program a row, a pass for the maximum and one for the sums."""

import torch
import triton
import triton.language as tl


@triton.jit
def smoothed_cross_entropy_kernel(
    logits_ptr, target_ptr, loss_ptr, stride, classes, smoothing, ignore_index, BLOCK: tl.constexpr
):
    """Computes the loss of one row; logits are shifted by the row's maximum."""
    row = tl.program_id(0).to(tl.int64)
    logits_row = logits_ptr + row * stride
    target = tl.load(target_ptr + row)
    lane = tl.arange(0, BLOCK)

    top = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + lane
        x = tl.load(logits_row + at, mask=at < classes, other=float("-inf")).to(tl.float32)
        top = tl.maximum(top, x)
    row_max = tl.max(top, axis=0)

    exponentials = tl.zeros([BLOCK], tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + lane
        inside = at < classes
        x = tl.load(logits_row + at, mask=inside, other=0.0).to(tl.float32) - row_max
        exponentials += tl.where(inside, tl.exp(x), 0.0)
        total += tl.where(inside, x, 0.0)
    log_sum = tl.log(tl.sum(exponentials, axis=0))
    mean = tl.sum(total, axis=0) / classes

    kept = target != ignore_index
    picked = tl.load(logits_row + tl.where(kept, target, 0)).to(tl.float32) - row_max
    loss = log_sum - (1.0 - smoothing) * picked - smoothing * mean
    tl.store(loss_ptr + row, tl.where(kept, loss, 0.0).to(tl.bfloat16))


def smoothed_cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, smoothing: float, ignore_index: int
) -> torch.Tensor:
    """Loss of each row of logits, bfloat16[rows, classes] with any row stride."""
    rows, classes = logits.shape
    loss = torch.empty((rows,), dtype=logits.dtype, device=logits.device)
    smoothed_cross_entropy_kernel[(rows,)](
        logits, target, loss, logits.stride(0), classes, smoothing, ignore_index, BLOCK=512
    )
    return loss
