"""Ternary product: one program a tile of the output; weights are unpacked in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def bitnet_kernel(
    x_ptr,
    x_scale_ptr,
    code_ptr,
    out_ptr,
    m,
    n,
    k,
    x_row,
    code_row,
    w_scale,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Computes one ROWS x COLS tile."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    cols = (tl.program_id(1) * COLS + tl.arange(0, COLS)).to(tl.int64)
    total = tl.zeros([ROWS, COLS], tl.int32)
    for start in range(0, k, DEPTH):
        at = start + tl.arange(0, DEPTH)
        x_in = (rows[:, None] < m) & (at[None, :] < k)
        x = tl.load(x_ptr + rows[:, None] * x_row + at[None, :], mask=x_in, other=0)
        w_in = (cols[None, :] < n) & (at[:, None] < k)
        code = tl.load(code_ptr + cols[None, :] * code_row + at[:, None] // 4, mask=w_in, other=85)
        bits = (code.to(tl.int32) >> (2 * (at[:, None] % 4))) & 3
        total = tl.dot(x, (bits - 1).to(tl.int8), total, out_dtype=tl.int32)
    scale = tl.load(x_scale_ptr + rows, mask=rows < m, other=0.0) * w_scale
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :],
        (total.to(tl.float32) * scale[:, None]).to(tl.bfloat16),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def bitnet_matmul(
    x: torch.Tensor, x_scale: torch.Tensor, code: torch.Tensor, w_scale: float
) -> torch.Tensor:
    """Product of x, int8[m, k], and ternary weights; both matrices may have any row stride."""
    m, k = x.shape
    n = code.shape[0]
    out = torch.empty((m, n), dtype=torch.bfloat16, device=x.device)
    bitnet_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        x,
        x_scale,
        code,
        out,
        m,
        n,
        k,
        x.stride(0),
        code.stride(0),
        w_scale,
        ROWS=32,
        COLS=32,
        DEPTH=64,
    )
    return out
