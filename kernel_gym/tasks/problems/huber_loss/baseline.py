"""Huber loss: one program a row adds it up block by block."""

import torch
import triton
import triton.language as tl


@triton.jit
def huber_loss_kernel(
    prediction_ptr,
    target_ptr,
    loss_ptr,
    prediction_stride,
    target_stride,
    cols,
    delta,
    BLOCK: tl.constexpr,
):
    """Averages the loss of one row."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        prediction = tl.load(prediction_ptr + row * prediction_stride + at, mask=inside, other=0.0)
        target = tl.load(target_ptr + row * target_stride + at, mask=inside, other=0.0)
        size = tl.abs(prediction.to(tl.float32) - target.to(tl.float32))
        total += tl.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))
    tl.store(loss_ptr + row, (tl.sum(total, axis=0) / cols).to(tl.float16))


def huber_loss(prediction: torch.Tensor, target: torch.Tensor, delta: float) -> torch.Tensor:
    """Loss of each row of two float16[rows, cols] with any row strides."""
    rows, cols = prediction.shape
    loss = torch.empty((rows,), dtype=prediction.dtype, device=prediction.device)
    huber_loss_kernel[(rows,)](
        prediction,
        target,
        loss,
        prediction.stride(0),
        target.stride(0),
        cols,
        delta,
        BLOCK=256,
    )
    return loss
