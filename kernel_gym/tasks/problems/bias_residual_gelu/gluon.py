"""Bias, GELU, residual in Gluon: one program a strip of one row."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def bias_residual_gelu_kernel(
    x_ptr, bias_ptr, residual_ptr, out_ptr, x_row, residual_row, cols, BLOCK: gl.constexpr
):
    """Computes BLOCK neighbours."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    row = gl.program_id(0).to(gl.int64)
    at = gl.program_id(1) * BLOCK + gl.arange(0, BLOCK, layout=LAYOUT)
    inside = at < cols
    x = gl.load(x_ptr + row * x_row + at, mask=inside, other=0.0).to(gl.float32)
    bias = gl.load(bias_ptr + at, mask=inside, other=0.0).to(gl.float32)
    residual = gl.load(residual_ptr + row * residual_row + at, mask=inside, other=0.0)
    h = x + bias
    out = residual.to(gl.float32) + 0.5 * h * (1.0 + gl.erf(h * 0.7071067811865476))
    gl.store(out_ptr + row * cols + at, out.to(gl.float16), mask=inside)


def bias_residual_gelu(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """Sum for float16[rows, cols] matrices with any row strides."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = 1024
    bias_residual_gelu_kernel[(rows, triton.cdiv(cols, block))](
        x, bias, residual, out, x.stride(0), residual.stride(0), cols, BLOCK=block
    )
    return out
