"""Matrix product: one program a tile of the output, a plain loop over k."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    m,
    n,
    k,
    a_stride,
    b_stride,
    TILE: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Computes one TILE x TILE tile; GROUP tiles of a column are neighbours."""
    group = tl.program_id(0) // (GROUP * tl.cdiv(n, TILE))
    height = tl.minimum(tl.cdiv(m, TILE) - group * GROUP, GROUP)
    place = tl.program_id(0) % (GROUP * tl.cdiv(n, TILE))
    rows = (group * GROUP + place % height) * TILE + tl.arange(0, TILE)
    cols = place // height * TILE + tl.arange(0, TILE)
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, k, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_stride + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        b = tl.load(
            b_ptr + depth[:, None].to(tl.int64) * b_stride + cols[None, :],
            mask=(depth[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        total = tl.dot(a, b, total)
    tl.store(
        out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :],
        total.to(tl.float16),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Product of a, float16[m, k], and b, float16[k, n], with any row strides."""
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tile = 64
    grid = (triton.cdiv(m, tile) * triton.cdiv(n, tile),)
    matmul_kernel[grid](a, b, out, m, n, k, a.stride(0), b.stride(0), TILE=tile, DEPTH=64, GROUP=8)
    return out
