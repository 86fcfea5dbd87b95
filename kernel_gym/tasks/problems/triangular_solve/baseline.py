"""Forward substitution: one program some right sides of one system, a row after the other."""

import torch
import triton
import triton.language as tl


@triton.jit
def triangular_solve_kernel(
    a_ptr,
    b_ptr,
    x_ptr,
    n,
    rights,
    a_batch,
    a_row,
    b_batch,
    b_row,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """Keeps the solution in registers; each step adds one row to it."""
    batch = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, ROWS)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = col < rights
    x = tl.zeros([ROWS, COLS], tl.float32)
    for i in range(0, n):
        a = tl.load(a_ptr + batch * a_batch + i * a_row + row, mask=row <= i, other=0.0)
        pivot = tl.sum(tl.where(row == i, a, 0.0), axis=0)
        known = tl.sum(a[:, None] * x, axis=0)
        b = tl.load(b_ptr + batch * b_batch + i * b_row + col, mask=inside, other=0.0)
        x = tl.where(row[:, None] == i, ((b - known) / pivot)[None, :], x)
    at = (batch * n + row[:, None]) * rights + col[None, :]
    tl.store(x_ptr + at, x, mask=(row[:, None] < n) & inside[None, :])


def triangular_solve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Solution for a, float32[batch, n, n], and b, float32[batch, n, rights], outer strides any."""
    batch, n, rights = b.shape
    x = torch.empty((batch, n, rights), dtype=b.dtype, device=b.device)
    cols = 16
    triangular_solve_kernel[(batch, triton.cdiv(rights, cols))](
        a,
        b,
        x,
        n,
        rights,
        *a.stride()[:2],
        *b.stride()[:2],
        ROWS=triton.next_power_of_2(n),
        COLS=cols,
        num_warps=1,
    )
    return x
