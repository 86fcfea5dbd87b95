"""SwiGLU in Gluon: one program handles a short strip of one output row."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def swiglu_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: gl.constexpr):
    """Gates BLOCK neighbours of one row."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    row = gl.program_id(0).to(gl.int64)
    at = gl.program_id(1) * BLOCK + gl.arange(0, BLOCK, layout=LAYOUT)
    inside = at < cols
    gate = gl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(gl.float32)
    up = gl.load(x_ptr + row * x_stride + cols + at, mask=inside, other=0.0).to(gl.float32)
    out = gate / (1.0 + gl.exp(-gate)) * up
    gl.store(out_ptr + row * cols + at, out.to(gl.bfloat16), mask=inside)


def swiglu(x: torch.Tensor) -> torch.Tensor:
    """Gate of x, bfloat16[rows, 2 * cols] with any row stride."""
    rows, width = x.shape
    cols = width // 2
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = 1024
    swiglu_kernel[(rows, triton.cdiv(cols, block))](x, out, x.stride(0), cols, BLOCK=block)
    return out
