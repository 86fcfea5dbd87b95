"""Gauss-Jordan elimination with row exchanges: one program a matrix held in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def inverse_kernel(a_ptr, out_ptr, n, a_batch, a_row, SIZE: tl.constexpr):
    """Turns a into the unit matrix, and the unit matrix into the inverse, a column at a time."""
    batch = tl.program_id(0).to(tl.int64)
    line = tl.arange(0, SIZE)
    row = line[:, None]
    col = line[None, :]
    inside = (row < n) & (col < n)
    a = tl.load(a_ptr + batch * a_batch + row * a_row + col, mask=inside, other=0.0)
    inverse = tl.where(row == col, 1.0, 0.0)
    for j in range(0, n):
        column = tl.sum(tl.where(col == j, a, 0.0), axis=1)
        candidate = tl.where((line >= j) & (line < n), tl.abs(column), -1.0)
        best = tl.max(candidate, axis=0)
        pick = tl.min(tl.where(candidate == best, line, SIZE), axis=0)
        pivot = tl.sum(tl.where(line == pick, column, 0.0), axis=0)

        a_pick = tl.sum(tl.where(row == pick, a, 0.0), axis=0) / pivot
        a_j = tl.sum(tl.where(row == j, a, 0.0), axis=0)
        inverse_pick = tl.sum(tl.where(row == pick, inverse, 0.0), axis=0) / pivot
        inverse_j = tl.sum(tl.where(row == j, inverse, 0.0), axis=0)
        a = tl.where(row == pick, a_j[None, :], a)
        inverse = tl.where(row == pick, inverse_j[None, :], inverse)

        factor = tl.sum(tl.where(col == j, a, 0.0), axis=1)
        a = tl.where(row == j, a_pick[None, :], a - factor[:, None] * a_pick[None, :])
        left = inverse - factor[:, None] * inverse_pick[None, :]
        inverse = tl.where(row == j, inverse_pick[None, :], left)
    tl.store(out_ptr + batch * n * n + row * n + col, inverse, mask=inside)


def batched_inverse(a: torch.Tensor) -> torch.Tensor:
    """Inverses of a, float32[batch, n, n] with any outer strides."""
    batch, n, _ = a.shape
    out = torch.empty((batch, n, n), dtype=a.dtype, device=a.device)
    size = triton.next_power_of_2(n)
    inverse_kernel[(batch,)](a, out, n, *a.stride()[:2], SIZE=size, num_warps=1)
    return out
