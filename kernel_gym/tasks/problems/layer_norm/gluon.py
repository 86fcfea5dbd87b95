"""Layer normalisation in Gluon: one program a row; three passes over it."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, x_stride, cols, eps, BLOCK: gl.constexpr
):
    """Normalises one row, reading it block by block three times."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    row = gl.program_id(0).to(gl.int64)
    x_row = x_ptr + row * x_stride
    out_row = out_ptr + row * cols
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
    scale = 1.0 / gl.sqrt(gl.sum(squares, axis=0) / cols + eps)

    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        x = gl.load(x_row + at, mask=inside, other=0.0).to(gl.float32)
        weight = gl.load(weight_ptr + at, mask=inside, other=0.0).to(gl.float32)
        bias = gl.load(bias_ptr + at, mask=inside, other=0.0).to(gl.float32)
        gl.store(out_row + at, (x - mean) * scale * weight + bias, mask=inside)


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Normalises the rows of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    layer_norm_kernel[(rows,)](x, weight, bias, out, x.stride(0), cols, eps, BLOCK=1024)
    return out
