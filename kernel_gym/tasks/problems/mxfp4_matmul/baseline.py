"""MXFP4 product: one program a tile of the output; codes are widened to bfloat16 in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def widened(code):
    """Returns the values of E2M1 codes as bfloat16, from their bits."""
    index = code & 7
    size = tl.where(
        index < 2, 0.5 * index, tl.where((index & 1) == 1, 1.5, 1.0) * (1 << (index >> 1)) * 0.5
    )
    return tl.where(code >= 8, -size, size).to(tl.bfloat16)


@triton.jit
def mxfp4_matmul_kernel(
    x_ptr,
    code_ptr,
    scale_ptr,
    bias_ptr,
    out_ptr,
    m,
    n,
    k,
    x_row,
    code_row,
    scale_row,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """Computes one ROWS x COLS tile, a block of 32 of k at a time."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    cols = (tl.program_id(1) * COLS + tl.arange(0, COLS)).to(tl.int64)
    lane = tl.arange(0, 32)
    total = tl.zeros([ROWS, COLS], tl.float32)
    for block in range(0, k // 32):
        at = block * 32 + lane
        x = tl.load(x_ptr + rows[:, None] * x_row + at[None, :], mask=rows[:, None] < m, other=0.0)
        packed = tl.load(
            code_ptr + cols[None, :] * code_row + at[:, None] // 2, mask=cols[None, :] < n, other=0
        )
        w = widened((packed.to(tl.int32) >> (4 * (at[:, None] % 2))) & 15)
        scale = tl.load(scale_ptr + cols * scale_row + block, mask=cols < n, other=127)
        factor = (scale.to(tl.int32) << 23).to(tl.float32, bitcast=True)
        total += tl.dot(x, w) * factor[None, :]
    bias = tl.load(bias_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    out = (total + bias[None, :]).to(tl.bfloat16)
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :],
        out,
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def mxfp4_matmul(
    x: torch.Tensor, code: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """Product of x, bfloat16[m, k], and weights; all matrices may have any row stride."""
    m, k = x.shape
    n = code.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    mxfp4_matmul_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 64))](
        x,
        code,
        scale,
        bias,
        out,
        m,
        n,
        k,
        x.stride(0),
        code.stride(0),
        scale.stride(0),
        ROWS=32,
        COLS=64,
    )
    return out
