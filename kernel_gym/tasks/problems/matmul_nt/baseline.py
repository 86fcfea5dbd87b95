"""x @ weight^T: one program a tile of the output; the weight tile is read transposed."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_nt_kernel(
    x_ptr,
    w_ptr,
    out_ptr,
    m,
    n,
    k,
    x_row,
    w_row,
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
        x = tl.load(
            x_ptr + rows[:, None].to(tl.int64) * x_row + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        w = tl.load(
            w_ptr + depth[:, None] + cols[None, :].to(tl.int64) * w_row,
            mask=(depth[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        total = tl.dot(x, w, total)
    tl.store(
        out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :],
        total.to(tl.float16),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def matmul_nt(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Product of x, float16[m, k], and the transpose of weight, float16[n, k], any row strides."""
    m, k = x.shape
    n = weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    tile = 64
    grid = (triton.cdiv(m, tile) * triton.cdiv(n, tile),)
    matmul_nt_kernel[grid](
        x, weight, out, m, n, k, x.stride(0), weight.stride(0), TILE=tile, DEPTH=64, GROUP=8
    )
    return out
