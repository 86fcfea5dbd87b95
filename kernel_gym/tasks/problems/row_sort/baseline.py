"""Sort by counting: a value's place is the number of values that come before it."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_sort_kernel(x_ptr, values_ptr, indices_ptr, x_stride, cols, BLOCK: tl.constexpr):
    """Places BLOCK values of one row, comparing each with the whole row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.arange(0, BLOCK)
    x_row = x_ptr + row * x_stride
    mine = tl.load(x_row + at, mask=at < cols, other=0.0)
    place = tl.zeros([BLOCK], tl.int32)
    for start in range(0, cols, BLOCK):
        other_at = start + lane
        other = tl.load(x_row + other_at, mask=other_at < cols, other=float("inf"))
        earlier = (other[None, :] == mine[:, None]) & (other_at[None, :] < at[:, None])
        before = (other[None, :] < mine[:, None]) | earlier
        place += tl.sum(before.to(tl.int32), axis=1)
    tl.store(values_ptr + row * cols + place, mine, mask=at < cols)
    tl.store(indices_ptr + row * cols + place, at.to(tl.int64), mask=at < cols)


def row_sort(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sorts the rows of x, float32[rows, cols] with any row stride."""
    rows, cols = x.shape
    values = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    indices = torch.empty((rows, cols), dtype=torch.int64, device=x.device)
    block = 32
    row_sort_kernel[(rows, triton.cdiv(cols, block))](
        x, values, indices, x.stride(0), cols, BLOCK=block
    )
    return values, indices
