"""Adafactor: a kernel for row means, one for column means, one for the RMS by row, one to apply."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(grad_ptr, row_ptr, new_ptr, stride, cols, decay, eps, BLOCK: tl.constexpr):
    """Updates the mean of one row."""
    i = tl.program_id(0).to(tl.int64)
    part = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        g = tl.load(grad_ptr + i * stride + at, mask=at < cols, other=0.0)
        part += g * g
    mean = tl.sum(part, axis=0) / cols + eps
    tl.store(new_ptr + i, decay * tl.load(row_ptr + i) + (1.0 - decay) * mean)


@triton.jit
def col_kernel(
    grad_ptr,
    col_ptr,
    new_ptr,
    stride,
    rows,
    cols,
    decay,
    eps,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """Updates the means of COLS columns."""
    at = tl.program_id(0) * COLS + tl.arange(0, COLS)
    part = tl.zeros([ROWS, COLS], tl.float32)
    for start in range(0, rows, ROWS):
        i = (start + tl.arange(0, ROWS)).to(tl.int64)
        inside = (i[:, None] < rows) & (at[None, :] < cols)
        g = tl.load(grad_ptr + i[:, None] * stride + at[None, :], mask=inside, other=0.0)
        part += g * g
    mean = tl.sum(part, axis=0) / rows + eps
    old = tl.load(col_ptr + at, mask=at < cols, other=0.0)
    tl.store(new_ptr + at, decay * old + (1.0 - decay) * mean, mask=at < cols)


@triton.jit
def size_kernel(grad_ptr, row_ptr, col_ptr, part_ptr, stride, rows, cols, BLOCK: tl.constexpr):
    """Adds up the squares of one row's update, without the mean of all rows."""
    i = tl.program_id(0).to(tl.int64)
    part = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        g = tl.load(grad_ptr + i * stride + at, mask=at < cols, other=0.0)
        part += g * g / tl.load(col_ptr + at, mask=at < cols, other=1.0)
    tl.store(part_ptr + i, tl.sum(part, axis=0) / tl.load(row_ptr + i))


@triton.jit
def total_kernel(row_ptr, part_ptr, scale_ptr, rows, cols, lr, limit, BLOCK: tl.constexpr):
    """Computes the factor of all updates from the rows' means and sums."""
    means = tl.zeros([BLOCK], tl.float32)
    parts = tl.zeros([BLOCK], tl.float32)
    for start in range(0, rows, BLOCK):
        i = start + tl.arange(0, BLOCK)
        means += tl.load(row_ptr + i, mask=i < rows, other=0.0)
        parts += tl.load(part_ptr + i, mask=i < rows, other=0.0)
    mean = tl.sum(means, axis=0) / rows
    rms = tl.sqrt(tl.sum(parts, axis=0) / rows / cols * mean)
    tl.store(scale_ptr, lr * tl.sqrt(mean) / tl.maximum(1.0, rms / limit))


@triton.jit
def apply_kernel(
    param_ptr,
    grad_ptr,
    row_ptr,
    col_ptr,
    scale_ptr,
    out_ptr,
    param_row,
    grad_row,
    cols,
    BLOCK: tl.constexpr,
):
    """Updates BLOCK parameters of one row."""
    i = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < cols
    g = tl.load(grad_ptr + i * grad_row + at, mask=inside, other=0.0)
    col = tl.load(col_ptr + at, mask=inside, other=1.0)
    u = g / (tl.sqrt(tl.load(row_ptr + i)) * tl.sqrt(col))
    param = tl.load(param_ptr + i * param_row + at, mask=inside, other=0.0)
    tl.store(out_ptr + i * cols + at, param - tl.load(scale_ptr) * u, mask=inside)


def adafactor_step(
    param: torch.Tensor,
    grad: torch.Tensor,
    row: torch.Tensor,
    col: torch.Tensor,
    lr: float,
    decay: float,
    eps: float,
    limit: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """New param, row and col; rows of both float32 matrices may be padded."""
    rows, cols = param.shape
    out = torch.empty((rows, cols), dtype=param.dtype, device=param.device)
    new_row, new_col = torch.empty_like(row), torch.empty_like(col)
    part, scale = torch.empty_like(row), torch.empty((1,), device=param.device)
    row_kernel[(rows,)](grad, row, new_row, grad.stride(0), cols, decay, eps, BLOCK=512)
    col_kernel[(triton.cdiv(cols, 32),)](
        grad, col, new_col, grad.stride(0), rows, cols, decay, eps, ROWS=32, COLS=32
    )
    size_kernel[(rows,)](grad, new_row, new_col, part, grad.stride(0), rows, cols, BLOCK=512)
    total_kernel[(1,)](new_row, part, scale, rows, cols, lr, limit, BLOCK=512)
    apply_kernel[(rows, triton.cdiv(cols, 512))](
        param,
        grad,
        new_row,
        new_col,
        scale,
        out,
        param.stride(0),
        grad.stride(0),
        cols,
        BLOCK=512,
    )
    return out, new_row, new_col
