"""Batched matrix product: one program a tile of one product, a plain loop over k."""

import torch
import triton
import triton.language as tl


@triton.jit
def batched_matmul_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    m,
    n,
    k,
    a_batch,
    a_row,
    b_batch,
    b_row,
    TILE: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Computes one TILE x TILE tile."""
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    a_base = a_ptr + batch * a_batch
    b_base = b_ptr + batch * b_batch
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, k, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        a = tl.load(
            a_base + rows[:, None] * a_row + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        b = tl.load(
            b_base + depth[:, None] * b_row + cols[None, :],
            mask=(depth[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        total = tl.dot(a, b, total)
    tl.store(
        out_ptr + batch * m * n + rows[:, None] * n + cols[None, :],
        total.to(tl.float16),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def batched_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Products of a, float16[batch, m, k], and b, float16[batch, k, n], any outer strides."""
    batch, m, k = a.shape
    n = b.shape[2]
    out = torch.empty((batch, m, n), dtype=a.dtype, device=a.device)
    tile = 64
    grid = (triton.cdiv(m, tile), triton.cdiv(n, tile), batch)
    batched_matmul_kernel[grid](
        a, b, out, m, n, k, *a.stride()[:2], *b.stride()[:2], TILE=tile, DEPTH=64
    )
    return out
