"""Binary cross entropy: one program a row adds it up block by block."""

import torch
import triton
import triton.language as tl


@triton.jit
def bce_with_logits_kernel(
    logits_ptr,
    target_ptr,
    weight_ptr,
    loss_ptr,
    logits_stride,
    target_stride,
    classes,
    BLOCK: tl.constexpr,
):
    """Averages the loss of one row."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + lane
        inside = at < classes
        x = tl.load(logits_ptr + row * logits_stride + at, mask=inside, other=0.0).to(tl.float32)
        y = tl.load(target_ptr + row * target_stride + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0)
        tail = tl.log(1.0 + tl.exp(-tl.abs(x)))
        positive = y * weight * (tail + tl.maximum(-x, 0.0))
        negative = (1.0 - y) * (tail + tl.maximum(x, 0.0))
        total += tl.where(inside, positive + negative, 0.0)
    tl.store(loss_ptr + row, (tl.sum(total, axis=0) / classes).to(tl.float16))


def bce_with_logits(
    logits: torch.Tensor, target: torch.Tensor, pos_weight: torch.Tensor
) -> torch.Tensor:
    """Loss of each row of logits, float16[rows, classes] with any row stride."""
    rows, classes = logits.shape
    loss = torch.empty((rows,), dtype=logits.dtype, device=logits.device)
    bce_with_logits_kernel[(rows,)](
        logits,
        target,
        pos_weight,
        loss,
        logits.stride(0),
        target.stride(0),
        classes,
        BLOCK=128,
    )
    return loss
