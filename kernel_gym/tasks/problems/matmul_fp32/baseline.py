"""Single-precision product: one program a tile of the output, a plain loop over k."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_fp32_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_row, b_row, TILE: tl.constexpr, DEPTH: tl.constexpr
):
    """Computes one TILE x TILE tile without lowering the precision of the operands."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, k, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_row + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        b = tl.load(
            b_ptr + depth[:, None].to(tl.int64) * b_row + cols[None, :],
            mask=(depth[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(
        out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :],
        total,
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def matmul_fp32(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Product of a, float32[m, k], and b, float32[k, n], with any row strides."""
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tile = 64
    grid = (triton.cdiv(m, tile), triton.cdiv(n, tile))
    matmul_fp32_kernel[grid](
        a,
        b,
        out,
        m,
        n,
        k,
        a.stride(0),
        b.stride(0),
        TILE=tile,
        DEPTH=32,
        num_warps=4,
        num_stages=1,
    )
    return out
