"""Patch embedding: one program a tile of patches by filters, pixels gathered from their squares."""

import torch
import triton
import triton.language as tl


@triton.jit
def patch_embed_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    position_ptr,
    out_ptr,
    x_batch,
    x_channel,
    x_row,
    weight_filter,
    weight_channel,
    weight_row,
    position_row,
    cols,
    tokens,
    hidden,
    patch,
    fan_in,
    TILE: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Computes TILE tokens of one image at TILE filters, DEPTH products at a time."""
    batch = tl.program_id(0).to(tl.int64)
    token = tl.program_id(1) * TILE + tl.arange(0, TILE)
    filter_at = tl.program_id(2) * TILE + tl.arange(0, TILE)
    corner = token // cols * patch * x_row + token % cols * patch
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, fan_in, DEPTH):
        at = start + tl.arange(0, DEPTH)
        channel = at // (patch * patch)
        i = at // patch % patch
        j = at % patch
        pixels = tl.load(
            x_ptr
            + batch * x_batch
            + corner[:, None]
            + (channel * x_channel + i * x_row + j)[None, :],
            mask=(token[:, None] < tokens) & (at[None, :] < fan_in),
            other=0.0,
        )
        weight = tl.load(
            weight_ptr
            + (channel * weight_channel + i * weight_row + j)[:, None]
            + filter_at[None, :] * weight_filter,
            mask=(at[:, None] < fan_in) & (filter_at[None, :] < hidden),
            other=0.0,
        )
        total = tl.dot(pixels, weight, total)
    inside = (token[:, None] < tokens) & (filter_at[None, :] < hidden)
    bias = tl.load(bias_ptr + filter_at, mask=filter_at < hidden, other=0.0).to(tl.float32)
    place = tl.load(
        position_ptr + token[:, None] * position_row + filter_at[None, :], mask=inside, other=0.0
    )
    tl.store(
        out_ptr + (batch * tokens + token[:, None]) * hidden + filter_at[None, :],
        (total + bias[None, :] + place.to(tl.float32)).to(tl.float16),
        mask=inside,
    )


def patch_embed(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, position: torch.Tensor
) -> torch.Tensor:
    """Embeds the patches of x, float16[batch, channels, height, width], with any outer strides."""
    batch, channels, _, width = x.shape
    hidden, _, _, patch = weight.shape
    tokens = position.shape[0]
    out = torch.empty((batch, tokens, hidden), dtype=x.dtype, device=x.device)
    tile = 64
    grid = (batch, triton.cdiv(tokens, tile), triton.cdiv(hidden, tile))
    patch_embed_kernel[grid](
        x,
        weight,
        bias,
        position,
        out,
        *x.stride()[:3],
        *weight.stride()[:3],
        position.stride(0),
        width // patch,
        tokens,
        hidden,
        patch,
        channels * patch * patch,
        TILE=tile,
        DEPTH=32,
        num_warps=4,
        num_stages=1,
    )
    return out
