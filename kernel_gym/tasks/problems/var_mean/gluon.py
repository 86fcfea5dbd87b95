"""Variance and mean in Gluon: one program a row, a pass for the mean and one for the variance."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def var_mean_kernel(x_ptr, variance_ptr, mean_ptr, x_stride, cols, BLOCK: gl.constexpr):
    """Reads one row block by block twice."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    row = gl.program_id(0).to(gl.int64)
    x_row = x_ptr + row * x_stride
    lane = gl.arange(0, BLOCK, layout=LAYOUT)

    total = gl.zeros([BLOCK], gl.float32, layout=LAYOUT)
    for start in range(0, cols, BLOCK):
        at = start + lane
        total += gl.load(x_row + at, mask=at < cols, other=0.0).to(gl.float32)
    mean = gl.sum(total, axis=0) / cols

    squares = gl.zeros([BLOCK], gl.float32, layout=LAYOUT)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = gl.load(x_row + at, mask=at < cols, other=0.0).to(gl.float32)
        centred = gl.where(at < cols, x - mean, 0.0)
        squares += centred * centred
    variance = gl.sum(squares, axis=0) / (cols - 1)

    gl.store(variance_ptr + row, variance.to(gl.bfloat16))
    gl.store(mean_ptr + row, mean.to(gl.bfloat16))


def var_mean(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Variance and mean of the rows of x, bfloat16[rows, cols] with any row stride."""
    rows, cols = x.shape
    variance = torch.empty((rows,), dtype=x.dtype, device=x.device)
    mean = torch.empty((rows,), dtype=x.dtype, device=x.device)
    var_mean_kernel[(rows,)](x, variance, mean, x.stride(0), cols, BLOCK=1024)
    return variance, mean
