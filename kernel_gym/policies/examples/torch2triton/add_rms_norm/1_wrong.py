"""Wrong: the residual is added to the second output, but the norm is of x alone."""

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
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / cols + eps)
    tl.store(out_ptr + row * cols + at, (x * scale * weight).to(tl.float16), mask=inside)


def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Norm of x + residual, and the sum; float16[rows, cols] with any row strides."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    total = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    row_kernel[(rows,)](
        x,
        residual,
        weight,
        out,
        total,
        x.stride(0),
        residual.stride(0),
        cols,
        eps,
        BLOCK=triton.next_power_of_2(cols),
        num_warps=8,
    )
    return out, total
