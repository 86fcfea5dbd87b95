"""Wrong: the polynomial has x squared where x cubed belongs."""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    """Applies GELU to BLOCK neighbours of one row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0).to(tl.float32)
    out = x / (1.0 + tl.exp(-1.5957691216057308 * x * (1.0 + 0.044715 * x)))
    tl.store(out_ptr + row * cols + at, out.to(tl.bfloat16), mask=at < cols)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """GELU of x, bfloat16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block, warps = (1024, 4) if cols > 512 else (256, 1)
    gelu_kernel[(rows, triton.cdiv(cols, block))](
        x, out, x.stride(0), cols, BLOCK=block, num_warps=warps
    )
    return out
