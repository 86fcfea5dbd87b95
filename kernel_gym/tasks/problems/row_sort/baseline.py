"""Sort: one program a row, which sorts pairs of value and index as 64-bit numbers in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_sort_kernel(x_ptr, values_ptr, indices_ptr, x_stride, cols, BLOCK: tl.constexpr):
    """Sorts by value, then by index, as the index is the lower half of a pair."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=float("inf"))
    bits = tl.where(x == 0.0, 0.0, x).to(tl.int32, bitcast=True)
    key = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # integers in the order of the floats
    pair = tl.sort((key.to(tl.int64) << 32) | at.to(tl.int64))
    key = (pair >> 32).to(tl.int32)
    value = (key ^ ((key >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
    tl.store(values_ptr + row * cols + at, value, mask=at < cols)
    tl.store(indices_ptr + row * cols + at, pair & 0xFFFFFFFF, mask=at < cols)


def row_sort(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sorts the rows of x, float32[rows, cols] with any row stride."""
    rows, cols = x.shape
    values = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    indices = torch.empty((rows, cols), dtype=torch.int64, device=x.device)
    block = triton.next_power_of_2(cols)
    row_sort_kernel[(rows,)](
        x, values, indices, x.stride(0), cols, BLOCK=block, num_warps=min(8, max(1, block // 256))
    )
    return values, indices
