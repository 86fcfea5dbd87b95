"""Transposed convolution: one program computes a strip of one output row, channel by channel.

Two samples reach an output: the one at or before it, and the one before that.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def conv_transpose1d_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    x_batch,
    x_channel,
    weight_channel,
    weight_filter,
    channels,
    filters,
    time,
    stride,
    BLOCK: tl.constexpr,
):
    """Computes BLOCK neighbours of one row."""
    row = tl.program_id(0).to(tl.int64)
    filter_at = row % filters
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    place = at + stride // 2
    t = place // stride
    tap = place % stride
    x_row = x_ptr + row // filters * x_batch
    taps = weight_ptr + filter_at * weight_filter
    total = tl.zeros([BLOCK], tl.float32) + tl.load(bias_ptr + filter_at).to(tl.float32)
    for channel in range(channels):
        x_at = x_row + channel * x_channel + t
        here = tl.load(x_at, mask=t < time, other=0.0).to(tl.float32)
        before = tl.load(x_at - 1, mask=(t > 0) & (t <= time), other=0.0).to(tl.float32)
        near = tl.load(taps + channel * weight_channel + tap).to(tl.float32)
        far = tl.load(taps + channel * weight_channel + tap + stride).to(tl.float32)
        total += near * here + far * before
    length = time * stride
    tl.store(out_ptr + row * length + at, total.to(tl.float16), mask=at < length)


def conv_transpose1d(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, stride: int
) -> torch.Tensor:
    """Upsamples x, float16[batch, channels, time], with any outer strides."""
    batch, channels, time = x.shape
    filters = weight.shape[1]
    out = torch.empty((batch, filters, time * stride), dtype=x.dtype, device=x.device)
    block = 128
    conv_transpose1d_kernel[(batch * filters, triton.cdiv(time * stride, block))](
        x,
        weight,
        bias,
        out,
        *x.stride()[:2],
        *weight.stride()[:2],
        channels,
        filters,
        time,
        stride,
        BLOCK=block,
    )
    return out
