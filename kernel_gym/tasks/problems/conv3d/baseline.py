"""3-D convolution as a product for each tap: one program a tile of filters by outputs."""

import torch
import triton
import triton.language as tl


@triton.jit
def conv3d_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    x_row,
    weight_row,
    channels,
    filters,
    depth,
    height,
    width,
    out_height,
    out_width,
    count,
    stride,
    WINDOW: tl.constexpr,
    TILE: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Computes TILE filters at TILE voxels of one volume."""
    batch = tl.program_id(0).to(tl.int64)
    filter_at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    voxel = tl.program_id(2) * TILE + tl.arange(0, TILE)
    z = voxel // (out_height * out_width) * stride - WINDOW // 2
    y = voxel // out_width % out_height * stride - WINDOW // 2
    x = voxel % out_width * stride - WINDOW // 2
    total = tl.zeros([TILE, TILE], tl.float32)
    for tap in range(WINDOW * WINDOW * WINDOW):
        i = z + tap // (WINDOW * WINDOW)
        j = y + tap // WINDOW % WINDOW
        k = x + tap % WINDOW
        inside = (i >= 0) & (i < depth) & (j >= 0) & (j < height) & (k >= 0) & (k < width)
        for start in range(0, channels, CHANNELS):
            channel = start + tl.arange(0, CHANNELS)
            line = (filter_at[:, None] * channels + channel[None, :]) * WINDOW * WINDOW
            taps = tl.load(
                weight_ptr + (line + tap // WINDOW) * weight_row + tap % WINDOW,
                mask=(filter_at[:, None] < filters) & (channel[None, :] < channels),
                other=0.0,
            )
            slab = (batch * channels + channel[:, None]) * depth
            voxels = tl.load(
                x_ptr + ((slab + i[None, :]) * height + j[None, :]) * x_row + k[None, :],
                mask=(channel[:, None] < channels) & inside[None, :],
                other=0.0,
            )
            total = tl.dot(taps, voxels, total)
    bias = tl.load(bias_ptr + filter_at, mask=filter_at < filters, other=0.0).to(tl.float32)
    at = (batch * filters + filter_at[:, None]) * count + voxel[None, :]
    tl.store(
        out_ptr + at,
        (total + bias[:, None]).to(tl.float16),
        mask=(filter_at[:, None] < filters) & (voxel[None, :] < count),
    )


def conv3d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, stride: int) -> torch.Tensor:
    """Convolves x, float16[batch, channels, depth, height, width], whose rows may be padded."""
    batch, channels, *sides = x.shape
    filters, window = weight.shape[0], weight.shape[2]
    counts = [(side - 1) // stride + 1 for side in sides]
    out = torch.empty((batch, filters, *counts), dtype=x.dtype, device=x.device)
    count = counts[0] * counts[1] * counts[2]
    grid = (batch, triton.cdiv(filters, 32), triton.cdiv(count, 32))
    conv3d_kernel[grid](
        x,
        weight,
        bias,
        out,
        x.stride(3),
        weight.stride(3),
        channels,
        filters,
        *sides,
        counts[1],
        counts[2],
        count,
        stride,
        WINDOW=window,
        TILE=32,
        CHANNELS=32,
    )
    return out
