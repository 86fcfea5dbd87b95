"""GELU, tanh form in Gluon: one program handles a short strip of one row."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def gelu_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: gl.constexpr):
    """Applies GELU to BLOCK neighbours of one row."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    row = gl.program_id(0).to(gl.int64)
    at = gl.program_id(1) * BLOCK + gl.arange(0, BLOCK, layout=LAYOUT)
    x = gl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0).to(gl.float32)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tanh = 1.0 - 2.0 / (gl.exp(2.0 * inner) + 1.0)
    out = 0.5 * x * (1.0 + tanh)
    gl.store(out_ptr + row * cols + at, out.to(gl.bfloat16), mask=at < cols)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """GELU of x, bfloat16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = 1024
    gelu_kernel[(rows, triton.cdiv(cols, block))](x, out, x.stride(0), cols, BLOCK=block)
    return out
