"""Convolution as nine matrix products: one program a tile of filters by pixels of one image."""

import torch
import triton
import triton.language as tl


@triton.jit
def conv2d_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    x_batch,
    x_channel,
    x_row,
    weight_filter,
    weight_channel,
    weight_row,
    channels,
    filters,
    height,
    width,
    TILE: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Computes TILE filters at TILE pixels, DEPTH channels at a time."""
    batch = tl.program_id(0).to(tl.int64)
    filter_at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    pixel = tl.program_id(2) * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, DEPTH)
    row = pixel // width
    col = pixel % width
    total = tl.zeros([TILE, TILE], tl.float32)
    for i in range(3):
        y = row + i - 1
        for j in range(3):
            x = col + j - 1
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            for start in range(0, channels, DEPTH):
                channel = start + inner
                taps = tl.load(
                    weight_ptr
                    + filter_at[:, None] * weight_filter
                    + channel[None, :] * weight_channel
                    + i * weight_row
                    + j,
                    mask=(filter_at[:, None] < filters) & (channel[None, :] < channels),
                    other=0.0,
                )
                pixels = tl.load(
                    x_ptr
                    + batch * x_batch
                    + channel[:, None] * x_channel
                    + (y * x_row + x)[None, :],
                    mask=(channel[:, None] < channels) & inside[None, :],
                    other=0.0,
                )
                total = tl.dot(taps, pixels, total)
    bias = tl.load(bias_ptr + filter_at, mask=filter_at < filters, other=0.0).to(tl.float32)
    out = (total + bias[:, None]).to(tl.float16)
    area = height * width
    out_at = out_ptr + (batch * filters + filter_at[:, None]) * area + pixel[None, :]
    tl.store(out_at, out, mask=(filter_at[:, None] < filters) & (pixel[None, :] < area))


def conv2d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Convolves x, float16[batch, channels, height, width], with any outer strides."""
    batch, channels, height, width = x.shape
    filters = weight.shape[0]
    out = torch.empty((batch, filters, height, width), dtype=x.dtype, device=x.device)
    tile = 64
    grid = (batch, triton.cdiv(filters, tile), triton.cdiv(height * width, tile))
    conv2d_kernel[grid](
        x,
        weight,
        bias,
        out,
        *x.stride()[:3],
        *weight.stride()[:3],
        channels,
        filters,
        height,
        width,
        TILE=tile,
        DEPTH=32,
        num_warps=4,
        num_stages=1,
    )
    return out
