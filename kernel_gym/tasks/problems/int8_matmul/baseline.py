"""W8A8 product: one program a tile, summed in int32, scaled at the end."""

import torch
import triton
import triton.language as tl


@triton.jit
def int8_matmul_kernel(
    a_ptr,
    b_ptr,
    a_scale_ptr,
    b_scale_ptr,
    out_ptr,
    m,
    n,
    k,
    a_row,
    b_row,
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
    total = tl.zeros([TILE, TILE], tl.int32)
    for start in range(0, k, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_row + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0,
        )
        b = tl.load(
            b_ptr + depth[:, None].to(tl.int64) * b_row + cols[None, :],
            mask=(depth[:, None] < k) & (cols[None, :] < n),
            other=0,
        )
        total += tl.dot(a, b, out_dtype=tl.int32)
    a_scale = tl.load(a_scale_ptr + rows, mask=rows < m, other=0.0)
    b_scale = tl.load(b_scale_ptr + cols, mask=cols < n, other=0.0)
    out = total.to(tl.float32) * a_scale[:, None] * b_scale[None, :]
    tl.store(
        out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :],
        out.to(tl.float16),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def int8_matmul(
    a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor
) -> torch.Tensor:
    """Scaled product of a, int8[m, k], and b, int8[k, n], with any row strides."""
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=torch.float16, device=a.device)
    tile = 64
    grid = (triton.cdiv(m, tile) * triton.cdiv(n, tile),)
    int8_matmul_kernel[grid](
        a,
        b,
        a_scale,
        b_scale,
        out,
        m,
        n,
        k,
        a.stride(0),
        b.stride(0),
        TILE=tile,
        DEPTH=64,
        GROUP=8,
        num_stages=1,
    )
    return out
