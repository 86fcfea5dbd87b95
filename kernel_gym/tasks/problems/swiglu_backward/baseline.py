"""SwiGLU backward: one program a strip of one row of grad."""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_backward_kernel(grad_ptr, x_ptr, dx_ptr, grad_row, x_row, cols, BLOCK: tl.constexpr):
    """Computes both halves of dx for BLOCK neighbours of one row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < cols
    grad = tl.load(grad_ptr + row * grad_row + at, mask=inside, other=0.0).to(tl.float32)
    gate = tl.load(x_ptr + row * x_row + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x_ptr + row * x_row + cols + at, mask=inside, other=0.0).to(tl.float32)
    s = 1.0 / (1.0 + tl.exp(-gate))
    dgate = grad * up * s * (1.0 + gate * (1.0 - s))
    dx_row = dx_ptr + row * 2 * cols
    tl.store(dx_row + at, dgate.to(tl.float16), mask=inside)
    tl.store(dx_row + cols + at, (grad * gate * s).to(tl.float16), mask=inside)


def swiglu_backward(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Gradient for grad, float16[rows, cols], and x, [rows, 2 * cols], with any row strides."""
    rows, cols = grad.shape
    dx = torch.empty((rows, 2 * cols), dtype=x.dtype, device=x.device)
    grid = (rows, triton.cdiv(cols, 512))
    swiglu_backward_kernel[grid](grad, x, dx, grad.stride(0), x.stride(0), cols, BLOCK=512)
    return dx
