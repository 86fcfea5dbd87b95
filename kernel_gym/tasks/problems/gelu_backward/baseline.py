"""GELU backward: one program a strip of one row."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def gelu_backward_kernel(
    grad_ptr, x_ptr, dx_ptr, grad_row, x_row, cols, TANH: tl.constexpr, BLOCK: tl.constexpr
):
    """Computes BLOCK neighbours of one row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * x_row + at, mask=inside, other=0.0)
    grad = tl.load(grad_ptr + row * grad_row + at, mask=inside, other=0.0)
    if TANH:
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        slope = 0.7978845608028654 * (1.0 + 0.134145 * x * x)
        t = libdevice.tanh(inner)
        derived = 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope
    else:
        density = 0.3989422804014327 * tl.exp(-0.5 * x * x)
        derived = 0.5 * (1.0 + tl.erf(x * 0.7071067811865476)) + x * density
    tl.store(dx_ptr + row * cols + at, grad * derived, mask=inside)


def gelu_backward(grad: torch.Tensor, x: torch.Tensor, tanh: int) -> torch.Tensor:
    """Gradient for grad and x, float32[rows, cols] with any row stride."""
    rows, cols = x.shape
    dx = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    grid = (rows, triton.cdiv(cols, 1024))
    gelu_backward_kernel[grid](
        grad, x, dx, grad.stride(0), x.stride(0), cols, TANH=tanh, BLOCK=1024
    )
    return dx
