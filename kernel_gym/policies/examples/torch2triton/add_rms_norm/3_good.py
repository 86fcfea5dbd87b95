"""Good: sum and norm in one kernel that reads each row once; very long rows go by blocks."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(
    x_ptr,
    residual_ptr,
    weight_ptr,
    out_ptr,
    sum_ptr,
    x_stride,
    residual_stride,
    cols,
    eps,
    BLOCK: tl.constexpr,
):
    """Adds and normalises one row that fits in one block."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + row * residual_stride + at, mask=inside, other=0.0)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    h = x + residual.to(tl.float32)
    tl.store(sum_ptr + row * cols + at, h.to(tl.float16), mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(h * h, axis=0) / cols + eps)
    tl.store(out_ptr + row * cols + at, (h * scale * weight).to(tl.float16), mask=inside)


@triton.jit
def long_row_kernel(
    x_ptr,
    residual_ptr,
    weight_ptr,
    out_ptr,
    sum_ptr,
    x_stride,
    residual_stride,
    cols,
    eps,
    BLOCK: tl.constexpr,
):
    """Adds and normalises one row of any length in two passes."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
        residual = tl.load(residual_ptr + row * residual_stride + at, mask=inside, other=0.0)
        h = x + residual.to(tl.float32)
        tl.store(sum_ptr + row * cols + at, h.to(tl.float16), mask=inside)
        squares += h * h
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
        residual = tl.load(residual_ptr + row * residual_stride + at, mask=inside, other=0.0)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
        out = (x + residual.to(tl.float32)) * scale * weight
        tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=inside)


def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Norm of x + residual, and the sum; float16[rows, cols] with any row strides."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    total = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    strides = (x.stride(0), residual.stride(0))
    for block, warps in ((1024, 2), (4096, 8), (16384, 16)):
        if cols <= block:
            row_kernel[(rows,)](
                x, residual, weight, out, total, *strides, cols, eps, BLOCK=block, num_warps=warps
            )
            return out, total
    long_row_kernel[(rows,)](
        x, residual, weight, out, total, *strides, cols, eps, BLOCK=8192, num_warps=16
    )
    return out, total
