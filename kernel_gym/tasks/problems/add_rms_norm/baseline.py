"""Residual addition and RMS norm: one program a row, a pass for the sum and one for the output."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_rms_norm_kernel(
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
    """Adds and squares one row block by block, then reads it again to normalise it."""
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
    residual_row = residual_ptr + row * residual_stride
    lane = tl.arange(0, BLOCK)

    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        x = tl.load(x_row + at, mask=inside, other=0.0).to(tl.float32)
        residual = tl.load(residual_row + at, mask=inside, other=0.0).to(tl.float32)
        h = x + residual
        tl.store(sum_ptr + row * cols + at, h.to(tl.float16), mask=inside)
        squares += h * h
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)

    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        x = tl.load(x_row + at, mask=inside, other=0.0).to(tl.float32)
        residual = tl.load(residual_row + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
        out = (x + residual) * scale * weight
        tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=inside)


def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Norm of x + residual, and the sum; float16[rows, cols] with any row strides."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    total = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    add_rms_norm_kernel[(rows,)](
        x, residual, weight, out, total, x.stride(0), residual.stride(0), cols, eps, BLOCK=1024
    )
    return out, total
