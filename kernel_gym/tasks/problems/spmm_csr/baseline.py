"""Sparse product: one program a strip of features of one row."""

import torch
import triton
import triton.language as tl


@triton.jit
def spmm_kernel(
    start_ptr, column_ptr, value_ptr, x_ptr, out_ptr, x_row, features, BLOCK: tl.constexpr
):
    """Adds up one row's neighbours."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for j in range(tl.load(start_ptr + row), tl.load(start_ptr + row + 1)):
        column = tl.load(column_ptr + j).to(tl.int64)
        value = tl.load(value_ptr + j).to(tl.float32)
        x = tl.load(x_ptr + column * x_row + at, mask=at < features, other=0.0)
        total += value * x.to(tl.float32)
    tl.store(out_ptr + row * features + at, total.to(tl.float16), mask=at < features)


def spmm_csr(
    start: torch.Tensor, column: torch.Tensor, value: torch.Tensor, x: torch.Tensor
) -> torch.Tensor:
    """Product with x, float16[cols, features] with any row stride."""
    rows, features = start.shape[0] - 1, x.shape[1]
    out = torch.empty((rows, features), dtype=x.dtype, device=x.device)
    grid = (rows, triton.cdiv(features, 128))
    spmm_kernel[grid](start, column, value, x, out, x.stride(0), features, BLOCK=128, num_warps=1)
    return out
