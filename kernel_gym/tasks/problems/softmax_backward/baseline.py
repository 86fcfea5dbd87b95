"""Softmax backward: one program a row, the row in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_backward_kernel(
    grad_ptr, y_ptr, dx_ptr, grad_row, y_row, cols, scale, BLOCK: tl.constexpr
):
    """Computes one row of dx."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    grad = tl.load(grad_ptr + row * grad_row + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + row * y_row + at, mask=inside, other=0.0).to(tl.float32)
    dx = scale * y * (grad - tl.sum(grad * y, axis=0))
    tl.store(dx_ptr + row * cols + at, dx.to(tl.float16), mask=inside)


def softmax_backward(grad: torch.Tensor, y: torch.Tensor, scale: float) -> torch.Tensor:
    """Gradient for grad and y, float16[rows, cols] with any row stride."""
    rows, cols = y.shape
    dx = torch.empty((rows, cols), dtype=y.dtype, device=y.device)
    block = triton.next_power_of_2(cols)
    softmax_backward_kernel[(rows,)](
        grad, y, dx, grad.stride(0), y.stride(0), cols, scale, BLOCK=block, num_warps=8
    )
    return dx
