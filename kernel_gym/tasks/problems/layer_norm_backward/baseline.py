"""Backward of layer norm: a program a row for dx, a program a strip of columns for the sums."""

import torch
import triton
import triton.language as tl


@triton.jit
def dx_kernel(
    grad_ptr,
    x_ptr,
    mean_ptr,
    rstd_ptr,
    weight_ptr,
    dx_ptr,
    grad_row,
    x_row,
    cols,
    BLOCK: tl.constexpr,
):
    """Computes one row of dx."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * x_row + at, mask=inside, other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + row * grad_row + at, mask=inside, other=0.0).to(tl.float32)
    g = grad * tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    n = (x - tl.load(mean_ptr + row)) * rstd
    shift = tl.sum(g, axis=0) / cols
    dx = rstd * (g - shift - n * (tl.sum(g * n, axis=0) / cols))
    tl.store(dx_ptr + row * cols + at, dx.to(tl.float16), mask=inside)


@triton.jit
def sums_kernel(
    grad_ptr,
    x_ptr,
    mean_ptr,
    rstd_ptr,
    dweight_ptr,
    dbias_ptr,
    grad_row,
    x_row,
    rows,
    cols,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """Adds up COLS columns of dweight and dbias over all rows."""
    at = tl.program_id(0) * COLS + tl.arange(0, COLS)
    dweight = tl.zeros([ROWS, COLS], tl.float32)
    dbias = tl.zeros([ROWS, COLS], tl.float32)
    for start in range(0, rows, ROWS):
        row = (start + tl.arange(0, ROWS)).to(tl.int64)
        inside = (row[:, None] < rows) & (at[None, :] < cols)
        grad = tl.load(grad_ptr + row[:, None] * grad_row + at[None, :], mask=inside, other=0.0).to(
            tl.float32
        )
        x = tl.load(x_ptr + row[:, None] * x_row + at[None, :], mask=inside, other=0.0).to(
            tl.float32
        )
        mean = tl.load(mean_ptr + row, mask=row < rows, other=0.0)
        rstd = tl.load(rstd_ptr + row, mask=row < rows, other=0.0)
        dweight += grad * (x - mean[:, None]) * rstd[:, None]
        dbias += grad
    tl.store(dweight_ptr + at, tl.sum(dweight, axis=0).to(tl.float16), mask=at < cols)
    tl.store(dbias_ptr + at, tl.sum(dbias, axis=0).to(tl.float16), mask=at < cols)


def layer_norm_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    weight: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients for grad and x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    dx = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    dweight = torch.empty((cols,), dtype=x.dtype, device=x.device)
    dbias = torch.empty((cols,), dtype=x.dtype, device=x.device)
    strides = (grad.stride(0), x.stride(0))
    block = triton.next_power_of_2(cols)
    warps = 4 if block <= 2048 else 8
    dx_kernel[(rows,)](
        grad, x, mean, rstd, weight, dx, *strides, cols, BLOCK=block, num_warps=warps
    )
    sums_kernel[(triton.cdiv(cols, 64),)](
        grad, x, mean, rstd, dweight, dbias, *strides, rows, cols, ROWS=32, COLS=64
    )
    return dx, dweight, dbias
