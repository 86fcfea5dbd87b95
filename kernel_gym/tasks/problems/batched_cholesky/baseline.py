"""Cholesky: one program a matrix held in registers, a column after the other."""

import torch
import triton
import triton.language as tl


@triton.jit
def cholesky_kernel(a_ptr, out_ptr, n, a_batch, a_row, SIZE: tl.constexpr):
    """Takes one column of the rest at a time and subtracts its outer product."""
    batch = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, SIZE)[:, None]
    col = tl.arange(0, SIZE)[None, :]
    inside = (row < n) & (col < n)
    rest = tl.load(a_ptr + batch * a_batch + row * a_row + col, mask=inside, other=0.0)
    factor = tl.zeros([SIZE, SIZE], tl.float32)
    for j in range(0, n):
        column = tl.sum(tl.where(col == j, rest, 0.0), axis=1)
        along = tl.sum(tl.where(row == j, rest, 0.0), axis=0)
        pivot = tl.sum(tl.where(tl.arange(0, SIZE) == j, column, 0.0), axis=0)
        root = tl.sqrt(pivot)
        column = tl.where(tl.arange(0, SIZE) >= j, column / root, 0.0)
        along = tl.where(tl.arange(0, SIZE) >= j, along / root, 0.0)
        factor = tl.where(col == j, column[:, None], factor)
        rest -= column[:, None] * along[None, :]
    tl.store(out_ptr + batch * n * n + row * n + col, factor, mask=inside)


def batched_cholesky(a: torch.Tensor) -> torch.Tensor:
    """Lower factors of a, float32[batch, n, n] with any outer strides."""
    batch, n, _ = a.shape
    out = torch.empty((batch, n, n), dtype=a.dtype, device=a.device)
    size = triton.next_power_of_2(n)
    cholesky_kernel[(batch,)](a, out, n, *a.stride()[:2], SIZE=size, num_warps=1)
    return out
