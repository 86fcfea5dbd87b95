"""Grouped product: a grid of tiles for every expert, of which those past its tokens return."""

import torch
import triton
import triton.language as tl


@triton.jit
def grouped_matmul_kernel(
    x_ptr,
    w_ptr,
    ends_ptr,
    out_ptr,
    n,
    k,
    x_row,
    w_expert,
    w_row,
    TILE: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Computes one TILE x TILE tile of one expert."""
    expert = tl.program_id(2)
    first = tl.load(ends_ptr + expert - 1, mask=expert > 0, other=0)
    end = tl.load(ends_ptr + expert)
    row = first + tl.program_id(0) * TILE
    if row >= end:
        return
    rows = row + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    w_base = w_ptr + expert.to(tl.int64) * w_expert
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, k, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        x = tl.load(
            x_ptr + rows[:, None].to(tl.int64) * x_row + depth[None, :],
            mask=(rows[:, None] < end) & (depth[None, :] < k),
            other=0.0,
        )
        w = tl.load(
            w_base + depth[:, None] * w_row + cols[None, :],
            mask=(depth[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        total = tl.dot(x, w, total)
    tl.store(
        out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :],
        total.to(tl.bfloat16),
        mask=(rows[:, None] < end) & (cols[None, :] < n),
    )


def grouped_matmul(x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Product of each expert's rows of x, bfloat16[tokens, k], with its weight [k, n]."""
    tokens, k = x.shape
    experts, _, n = weight.shape
    out = torch.empty((tokens, n), dtype=x.dtype, device=x.device)
    tile = 64
    grid = (triton.cdiv(tokens, tile), triton.cdiv(n, tile), experts)
    grouped_matmul_kernel[grid](
        x,
        weight,
        ends,
        out,
        n,
        k,
        x.stride(0),
        weight.stride(0),
        weight.stride(1),
        TILE=tile,
        DEPTH=64,
    )
    return out
