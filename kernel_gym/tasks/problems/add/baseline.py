"""Sum of two matrices: one program handles a short strip of one row."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, x_stride, y_stride, cols, BLOCK: tl.constexpr):
    """Adds BLOCK neighbours of one row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + at, mask=at < cols)
    y = tl.load(y_ptr + row * y_stride + at, mask=at < cols)
    tl.store(out_ptr + row * cols + at, x + y, mask=at < cols)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Sum of x and y, float16[rows, cols] with any row strides."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = 128
    add_kernel[(rows, triton.cdiv(cols, block))](
        x, y, out, x.stride(0), y.stride(0), cols, BLOCK=block
    )
    return out
