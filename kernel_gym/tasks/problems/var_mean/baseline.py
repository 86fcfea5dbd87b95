"""Variance and mean: one program a row, a pass for the mean and one for the variance."""

import torch
import triton
import triton.language as tl


@triton.jit
def var_mean_kernel(x_ptr, variance_ptr, mean_ptr, x_stride, cols, BLOCK: tl.constexpr):
    """Reads one row block by block twice."""
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
    lane = tl.arange(0, BLOCK)

    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        total += tl.load(x_row + at, mask=at < cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / cols

    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_row + at, mask=at < cols, other=0.0).to(tl.float32)
        centred = tl.where(at < cols, x - mean, 0.0)
        squares += centred * centred
    variance = tl.sum(squares, axis=0) / (cols - 1)

    tl.store(variance_ptr + row, variance.to(tl.bfloat16))
    tl.store(mean_ptr + row, mean.to(tl.bfloat16))


def var_mean(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Variance and mean of the rows of x, bfloat16[rows, cols] with any row stride."""
    rows, cols = x.shape
    variance = torch.empty((rows,), dtype=x.dtype, device=x.device)
    mean = torch.empty((rows,), dtype=x.dtype, device=x.device)
    var_mean_kernel[(rows,)](x, variance, mean, x.stride(0), cols, BLOCK=256)
    return variance, mean
