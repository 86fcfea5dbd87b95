"""Causal convolution: one program computes a strip of one channel, one load a tap."""

import torch
import triton
import triton.language as tl


@triton.jit
def causal_conv1d_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    x_batch,
    x_channel,
    weight_stride,
    channels,
    time,
    taps,
    BLOCK: tl.constexpr,
):
    """Convolves BLOCK steps of one channel."""
    plane = tl.program_id(0).to(tl.int64)
    channel = plane % channels
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x_row = x_ptr + plane // channels * x_batch + channel * x_channel
    y = tl.zeros([BLOCK], tl.float32) + tl.load(bias_ptr + channel).to(tl.float32)
    for j in range(taps):
        t = at - taps + 1 + j
        x = tl.load(x_row + t, mask=(t >= 0) & (t < time), other=0.0).to(tl.float32)
        y += tl.load(weight_ptr + channel * weight_stride + j).to(tl.float32) * x
    out = y / (1.0 + tl.exp(-y))
    tl.store(out_ptr + plane * time + at, out.to(tl.float16), mask=at < time)


def causal_conv1d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Convolves x, float16[batch, channels, time], with any outer strides."""
    batch, channels, time = x.shape
    out = torch.empty((batch, channels, time), dtype=x.dtype, device=x.device)
    block = 128
    causal_conv1d_kernel[(batch * channels, triton.cdiv(time, block))](
        x,
        weight,
        bias,
        out,
        x.stride(0),
        x.stride(1),
        weight.stride(0),
        channels,
        time,
        weight.shape[1],
        BLOCK=block,
    )
    return out
