"""Convolution as one matrix product over channels and taps together, in small tiles."""

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
    FILTERS: tl.constexpr,
    PIXELS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Computes FILTERS filters at PIXELS pixels of one image, DEPTH products at a time."""
    batch = tl.program_id(0).to(tl.int64)
    filter_at = tl.program_id(1) * FILTERS + tl.arange(0, FILTERS)
    pixel = tl.program_id(2) * PIXELS + tl.arange(0, PIXELS)
    row = pixel // width - 1
    col = pixel % width - 1
    inner = tl.arange(0, DEPTH)
    total = tl.zeros([FILTERS, PIXELS], tl.float32)
    for start in range(0, channels * 9, DEPTH):
        at = start + inner
        channel = at // 9
        i = at // 3 % 3
        j = at % 3
        real = channel < channels
        taps = tl.load(
            weight_ptr
            + filter_at[:, None] * weight_filter
            + (channel * weight_channel + i * weight_row + j)[None, :],
            mask=(filter_at[:, None] < filters) & real[None, :],
            other=0.0,
        )
        y = row[None, :] + i[:, None]
        x = col[None, :] + j[:, None]
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width) & real[:, None]
        pixels = tl.load(
            x_ptr + batch * x_batch + (channel * x_channel)[:, None] + y * x_row + x,
            mask=inside,
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
    small = batch * filters * height * width <= 1 << 20
    tile, pixels, depth = (16, 16, 256) if small else (64, 64, 64)
    grid = (batch, triton.cdiv(filters, tile), triton.cdiv(height * width, pixels))
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
        FILTERS=tile,
        PIXELS=pixels,
        DEPTH=depth,
        num_warps=4,
        num_stages=1,
    )
    return out
