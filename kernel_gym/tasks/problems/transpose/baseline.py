"""Matrix transpose: one program moves a strip of one row into a column."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, out_ptr, x_stride, rows, cols, BLOCK: tl.constexpr):
    """Reads BLOCK neighbours of one row and stores them `rows` elements apart."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x_ptr + row * x_stride + at, mask=at < cols)
    tl.store(out_ptr + at.to(tl.int64) * rows + row, values, mask=at < cols)


def transpose(x: torch.Tensor) -> torch.Tensor:
    """Contiguous transpose of x, float32[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((cols, rows), dtype=x.dtype, device=x.device)
    block = 256
    transpose_kernel[(rows, triton.cdiv(cols, block))](x, out, x.stride(0), rows, cols, BLOCK=block)
    return out
