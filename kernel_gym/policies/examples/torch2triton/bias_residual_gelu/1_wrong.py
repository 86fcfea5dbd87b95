"""Wrong: the residual is added before GELU, not after it."""

import torch
import triton
import triton.language as tl


@triton.jit
def bias_residual_gelu_kernel(
    x_ptr, bias_ptr, residual_ptr, out_ptr, x_row, residual_row, cols, BLOCK: tl.constexpr
):
    """Computes BLOCK neighbours of one row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * x_row + at, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + row * residual_row + at, mask=inside, other=0.0)
    h = x + bias + residual.to(tl.float32)
    out = 0.5 * h * (1.0 + tl.erf(h * 0.7071067811865476))
    tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=inside)


def bias_residual_gelu(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """Sum of residual and GELU, float16[rows, cols] with any row strides."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block, warps = (1024, 4) if cols > 512 else (256, 1)
    bias_residual_gelu_kernel[(rows, triton.cdiv(cols, block))](
        *(x, bias, residual, out, x.stride(0), residual.stride(0), cols),
        BLOCK=block,
        num_warps=warps,
    )
    return out
