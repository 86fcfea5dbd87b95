"""Backward of RMS norm: a program a row for dx, then a program a strip of columns for dweight."""

import torch
import triton
import triton.language as tl


@triton.jit
def dx_kernel(
    grad_ptr, x_ptr, weight_ptr, dx_ptr, r_ptr, grad_row, x_row, cols, eps, BLOCK: tl.constexpr
):
    """Computes one row of dx and keeps the row's factor r."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * x_row + at, mask=inside, other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + row * grad_row + at, mask=inside, other=0.0).to(tl.float32)
    g = grad * tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    r = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / cols + eps)
    n = x * r
    dx = r * (g - n * (tl.sum(g * n, axis=0) / cols))
    tl.store(dx_ptr + row * cols + at, dx.to(tl.float16), mask=inside)
    tl.store(r_ptr + row, r)


@triton.jit
def dweight_kernel(
    grad_ptr,
    x_ptr,
    r_ptr,
    dweight_ptr,
    grad_row,
    x_row,
    rows,
    cols,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """Adds the products of COLS columns over all rows."""
    at = tl.program_id(0) * COLS + tl.arange(0, COLS)
    total = tl.zeros([ROWS, COLS], tl.float32)
    for start in range(0, rows, ROWS):
        row = (start + tl.arange(0, ROWS)).to(tl.int64)
        inside = (row[:, None] < rows) & (at[None, :] < cols)
        grad = tl.load(grad_ptr + row[:, None] * grad_row + at[None, :], mask=inside, other=0.0)
        x = tl.load(x_ptr + row[:, None] * x_row + at[None, :], mask=inside, other=0.0)
        r = tl.load(r_ptr + row, mask=row < rows, other=0.0)
        total += grad.to(tl.float32) * x.to(tl.float32) * r[:, None]
    tl.store(dweight_ptr + at, tl.sum(total, axis=0), mask=at < cols)


def rms_norm_backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients for grad and x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    dx = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    dweight = torch.empty((cols,), dtype=torch.float32, device=x.device)
    r = torch.empty((rows,), dtype=torch.float32, device=x.device)
    strides = (grad.stride(0), x.stride(0))
    block = triton.next_power_of_2(cols)
    warps = 4 if block <= 2048 else 8
    dx_kernel[(rows,)](grad, x, weight, dx, r, *strides, cols, eps, BLOCK=block, num_warps=warps)
    dweight_kernel[(triton.cdiv(cols, 64),)](
        grad, x, r, dweight, *strides, rows, cols, ROWS=32, COLS=64
    )
    return dx, dweight
