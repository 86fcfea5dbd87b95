"""Squared ReLU in Gluon: one program handles a short strip of one row."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def relu_squared_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: gl.constexpr):
    """Clamps and squares BLOCK neighbours of one row."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    row = gl.program_id(0).to(gl.int64)
    at = gl.program_id(1) * BLOCK + gl.arange(0, BLOCK, layout=LAYOUT)
    x = gl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0).to(gl.float32)
    positive = gl.maximum(x, 0.0)
    gl.store(out_ptr + row * cols + at, (positive * positive).to(gl.bfloat16), mask=at < cols)


def relu_squared(x: torch.Tensor) -> torch.Tensor:
    """Squared ReLU of x, bfloat16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = 1024
    relu_squared_kernel[(rows, triton.cdiv(cols, block))](x, out, x.stride(0), cols, BLOCK=block)
    return out
