"""Mish in Gluon: one program handles a short strip of one row.

With `e = exp(x)`, `tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2)`.
"""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def mish_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: gl.constexpr):
    """Applies Mish to BLOCK neighbours of one row; from 20 on, it is the identity."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    row = gl.program_id(0).to(gl.int64)
    at = gl.program_id(1) * BLOCK + gl.arange(0, BLOCK, layout=LAYOUT)
    x = gl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0).to(gl.float32)
    e = gl.exp(gl.minimum(x, 20.0))
    grown = e * (e + 2.0)
    out = gl.where(x > 20.0, x, x * (grown / (grown + 2.0)))
    gl.store(out_ptr + row * cols + at, out.to(gl.float16), mask=at < cols)


def mish(x: torch.Tensor) -> torch.Tensor:
    """Mish of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = 1024
    mish_kernel[(rows, triton.cdiv(cols, block))](x, out, x.stride(0), cols, BLOCK=block)
    return out
