"""Newton-Schulz iteration: three launches of one product kernel, in full float32."""

import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(
    a_ptr,
    b_ptr,
    add_ptr,
    out_ptr,
    m,
    n,
    k,
    a_row,
    b_row,
    b_col,
    add_row,
    alpha,
    beta,
    rows_a,
    rows_b,
    TILE: tl.constexpr,
):
    """Computes one tile of alpha a b + beta add for one matrix of the batch."""
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    a_base = a_ptr + batch * rows_a
    b_base = b_ptr + batch * rows_b
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, k, TILE):
        at = start + tl.arange(0, TILE)
        a_in = (rows[:, None] < m) & (at[None, :] < k)
        a = tl.load(a_base + rows[:, None] * a_row + at[None, :], mask=a_in, other=0.0)
        b_in = (at[:, None] < k) & (cols[None, :] < n)
        b = tl.load(b_base + at[:, None] * b_row + cols[None, :] * b_col, mask=b_in, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    inside = (rows[:, None] < m) & (cols[None, :] < n)
    add_at = (batch * m + rows[:, None]) * add_row + cols[None, :]
    out = alpha * total
    if beta != 0.0:
        out += beta * tl.load(add_ptr + add_at, mask=inside, other=0.0)
    tl.store(out_ptr + (batch * m + rows[:, None]) * n + cols[None, :], out, mask=inside)


def muon_iteration(x: torch.Tensor, a: float, b: float, c: float) -> torch.Tensor:
    """Iterates x, float32[batch, rows, cols], whose rows may be padded."""
    batch, rows, cols = x.shape
    gram = torch.empty((batch, rows, rows), dtype=x.dtype, device=x.device)
    poly = torch.empty((batch, rows, rows), dtype=x.dtype, device=x.device)
    out = torch.empty((batch, rows, cols), dtype=x.dtype, device=x.device)
    tiles, wide = triton.cdiv(rows, 32), triton.cdiv(cols, 32)
    x_row, square = x.stride(1), rows * rows
    product_kernel[(tiles, tiles, batch)](
        x,
        x,
        x,
        gram,
        rows,
        rows,
        cols,
        x_row,
        1,
        x_row,
        x_row,
        1.0,
        0.0,
        x.stride(0),
        x.stride(0),
        TILE=32,
    )
    product_kernel[(tiles, tiles, batch)](
        gram, gram, gram, poly, rows, rows, rows, rows, rows, 1, rows, c, b, square, square, TILE=32
    )
    product_kernel[(tiles, wide, batch)](
        poly,
        x,
        x,
        out,
        rows,
        cols,
        rows,
        rows,
        x_row,
        1,
        x_row,
        1.0,
        a,
        square,
        x.stride(0),
        TILE=32,
    )
    return out
