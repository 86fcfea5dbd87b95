"""Column sums: one program sums a strip of columns over all rows, a few rows at a time."""

import torch
import triton
import triton.language as tl


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, x_row, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Adds up COLS columns."""
    at = tl.program_id(0) * COLS + tl.arange(0, COLS)
    total = tl.zeros([ROWS, COLS], tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        total += tl.load(
            x_ptr + row[:, None].to(tl.int64) * x_row + at[None, :],
            mask=(row[:, None] < rows) & (at[None, :] < cols),
            other=0.0,
        ).to(tl.float32)
    tl.store(out_ptr + at, tl.sum(total, axis=0), mask=at < cols)


def bias_gradient(x: torch.Tensor) -> torch.Tensor:
    """Sums the columns of x, bfloat16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((cols,), dtype=torch.float32, device=x.device)
    width = 64
    column_sum_kernel[(triton.cdiv(cols, width),)](
        x, out, x.stride(0), rows, cols, ROWS=16, COLS=width
    )
    return out
