"""2:4 sparse product: one program a tile; weights are widened to dense ones in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def sparse_kernel(
    x_ptr,
    value_ptr,
    place_ptr,
    out_ptr,
    m,
    n,
    k,
    x_row,
    value_row,
    place_row,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Computes one ROWS x COLS tile."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    cols = (tl.program_id(1) * COLS + tl.arange(0, COLS)).to(tl.int64)
    total = tl.zeros([ROWS, COLS], tl.float32)
    for start in range(0, k, DEPTH):
        at = start + tl.arange(0, DEPTH)
        x_in = (rows[:, None] < m) & (at[None, :] < k)
        x = tl.load(x_ptr + rows[:, None] * x_row + at[None, :], mask=x_in, other=0.0)
        inside = (cols[None, :] < n) & (at[:, None] < k)
        group = at[:, None] // 4
        byte = tl.load(place_ptr + cols[None, :] * place_row + group // 2, mask=inside, other=0).to(
            tl.int32
        )
        nibble = (byte >> (4 * (group % 2))) & 15
        low = tl.load(value_ptr + cols[None, :] * value_row + 2 * group, mask=inside, other=0.0)
        high = tl.load(
            value_ptr + cols[None, :] * value_row + 2 * group + 1, mask=inside, other=0.0
        )
        column = at[:, None] % 4
        w = tl.where(column == (nibble & 3), low, tl.where(column == nibble >> 2, high, 0.0))
        total = tl.dot(x, w.to(tl.float16), total)
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :],
        total.to(tl.float16),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def matmul_2to4(x: torch.Tensor, value: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """Product of x, float16[m, k], and sparse weights; all matrices may have any row stride."""
    m, k = x.shape
    n = value.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    sparse_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        x,
        value,
        place,
        out,
        m,
        n,
        k,
        x.stride(0),
        value.stride(0),
        place.stride(0),
        ROWS=32,
        COLS=32,
        DEPTH=32,
    )
    return out
