"""Gram matrix: one program a tile of the square; tiles of both triangles are computed."""

import torch
import triton
import triton.language as tl


@triton.jit
def gram_kernel(
    x_ptr,
    out_ptr,
    channels,
    positions,
    x_batch,
    x_row,
    TILE: tl.constexpr,
    DEPTH: tl.constexpr,
    PART: tl.constexpr,
):
    """Computes one TILE x TILE tile, DEPTH positions at a time."""
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    base = x_ptr + batch * x_batch
    total = tl.zeros([TILE, TILE], tl.float32)
    part = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, positions, DEPTH):
        at = start + tl.arange(0, DEPTH)
        left = tl.load(
            base + rows[:, None].to(tl.int64) * x_row + at[None, :],
            mask=(rows[:, None] < channels) & (at[None, :] < positions),
            other=0.0,
        )
        right = tl.load(
            base + cols[None, :].to(tl.int64) * x_row + at[:, None],
            mask=(cols[None, :] < channels) & (at[:, None] < positions),
            other=0.0,
        )
        part = tl.dot(left, right, part)
        if start % PART == PART - DEPTH:  # matrix units truncate, so long sums drift
            total += part
            part = tl.zeros([TILE, TILE], tl.float32)
    tl.store(
        out_ptr + batch * channels * channels + rows[:, None] * channels + cols[None, :],
        ((total + part) / positions).to(tl.float16),
        mask=(rows[:, None] < channels) & (cols[None, :] < channels),
    )


def gram_matrix(x: torch.Tensor) -> torch.Tensor:
    """Gram matrices of x, float16[batch, channels, positions] with any outer strides."""
    batch, channels, positions = x.shape
    out = torch.empty((batch, channels, channels), dtype=x.dtype, device=x.device)
    tile = 64
    grid = (triton.cdiv(channels, tile), triton.cdiv(channels, tile), batch)
    gram_kernel[grid](
        x,
        out,
        channels,
        positions,
        *x.stride()[:2],
        TILE=tile,
        DEPTH=32,
        PART=1024,
        num_warps=4,
        num_stages=1,
    )
    return out
