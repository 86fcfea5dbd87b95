"""Convolution as one matrix product a tap: one program a tile of filters by places of a signal."""

import torch
import triton
import triton.language as tl


@triton.jit
def conv1d_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    x_batch,
    x_channel,
    weight_filter,
    weight_channel,
    channels,
    filters,
    time,
    length,
    taps,
    stride,
    TILE: tl.constexpr,
):
    """Computes TILE filters at TILE places."""
    batch = tl.program_id(0).to(tl.int64)
    filter_at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    place = tl.program_id(2) * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, TILE)
    total = tl.zeros([TILE, TILE], tl.float32)
    for j in range(taps):
        t = place * stride + j - taps // 2
        inside = (t >= 0) & (t < time)
        for start in range(0, channels, TILE):
            channel = start + inner
            tap = tl.load(
                weight_ptr
                + filter_at[:, None] * weight_filter
                + channel[None, :] * weight_channel
                + j,
                mask=(filter_at[:, None] < filters) & (channel[None, :] < channels),
                other=0.0,
            )
            signal = tl.load(
                x_ptr + batch * x_batch + channel[:, None] * x_channel + t[None, :],
                mask=(channel[:, None] < channels) & inside[None, :],
                other=0.0,
            )
            total = tl.dot(tap, signal, total)
    bias = tl.load(bias_ptr + filter_at, mask=filter_at < filters, other=0.0).to(tl.float32)
    tl.store(
        out_ptr + (batch * filters + filter_at[:, None]) * length + place[None, :],
        (total + bias[:, None]).to(tl.float16),
        mask=(filter_at[:, None] < filters) & (place[None, :] < length),
    )


def conv1d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, stride: int) -> torch.Tensor:
    """Convolves x, float16[batch, channels, time], with any outer strides."""
    batch, channels, time = x.shape
    filters, _, taps = weight.shape
    length = (time - 1) // stride + 1
    out = torch.empty((batch, filters, length), dtype=x.dtype, device=x.device)
    tile = 32
    grid = (batch, triton.cdiv(filters, tile), triton.cdiv(length, tile))
    conv1d_kernel[grid](
        x,
        weight,
        bias,
        out,
        *x.stride()[:2],
        *weight.stride()[:2],
        channels,
        filters,
        time,
        length,
        taps,
        stride,
        TILE=tile,
        num_warps=4,
        num_stages=1,
    )
    return out
