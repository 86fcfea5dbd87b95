"""Gated MLP: one program a tile of the output, both products in one loop over k."""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_mlp_kernel(
    x_ptr,
    gate_ptr,
    up_ptr,
    out_ptr,
    m,
    n,
    k,
    x_row,
    gate_row,
    up_row,
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
    gate_total = tl.zeros([TILE, TILE], tl.float32)
    up_total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, k, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        inside = (depth[:, None] < k) & (cols[None, :] < n)
        deep = depth[:, None].to(tl.int64)
        x = tl.load(
            x_ptr + rows[:, None].to(tl.int64) * x_row + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        gate = tl.load(gate_ptr + deep * gate_row + cols[None, :], mask=inside, other=0.0)
        up = tl.load(up_ptr + deep * up_row + cols[None, :], mask=inside, other=0.0)
        gate_total = tl.dot(x, gate, gate_total)
        up_total = tl.dot(x, up, up_total)
    out = gate_total / (1.0 + tl.exp(-gate_total)) * up_total
    tl.store(
        out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :],
        out.to(tl.float16),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def swiglu_mlp(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Hidden layer for x, float16[m, k], gate and up, float16[k, n], with any row strides."""
    m, k = x.shape
    n = gate.shape[1]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    tile = 64
    grid = (triton.cdiv(m, tile) * triton.cdiv(n, tile),)
    swiglu_mlp_kernel[grid](
        x,
        gate,
        up,
        out,
        m,
        n,
        k,
        x.stride(0),
        gate.stride(0),
        up.stride(0),
        TILE=tile,
        DEPTH=64,
        GROUP=8,
    )
    return out
