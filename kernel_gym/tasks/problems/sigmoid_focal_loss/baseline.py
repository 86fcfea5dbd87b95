"""Focal loss: one program a strip of one row."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def focal_kernel(
    logits_ptr,
    target_ptr,
    loss_ptr,
    logits_row,
    target_row,
    rows,
    classes,
    alpha,
    gamma,
    BLOCK: tl.constexpr,
):
    """Computes the losses of BLOCK elements in the order of rows."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < rows * classes
    row = at // classes
    col = at % classes
    x = tl.load(logits_ptr + row * logits_row + col, mask=inside, other=0.0)
    target = tl.load(target_ptr + row * target_row + col, mask=inside, other=0.0)
    right = tl.where(target > 0.5, x, -x)
    small = tl.exp(-tl.abs(right))
    entropy = tl.maximum(-right, 0.0) + libdevice.log1p(small)
    wrong = tl.where(right > 0, small, 1.0) / (1.0 + small)
    loss = entropy * tl.where(gamma == 0.0, 1.0, tl.exp(gamma * tl.log(tl.maximum(wrong, 1e-38))))
    weight = tl.where(alpha < 0.0, 1.0, tl.where(target > 0.5, alpha, 1.0 - alpha))
    tl.store(loss_ptr + at, loss * weight, mask=inside)


def sigmoid_focal_loss(
    logits: torch.Tensor, target: torch.Tensor, alpha: float, gamma: float
) -> torch.Tensor:
    """Losses of float32[rows, classes] matrices with any row stride."""
    rows, classes = logits.shape
    loss = torch.empty((rows, classes), dtype=logits.dtype, device=logits.device)
    focal_kernel[(triton.cdiv(rows * classes, 1024),)](
        logits,
        target,
        loss,
        logits.stride(0),
        target.stride(0),
        rows,
        classes,
        float(alpha),
        float(gamma),
        BLOCK=1024,
    )
    return loss
