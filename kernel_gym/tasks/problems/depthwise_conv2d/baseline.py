"""Depthwise convolution: one program computes a strip of one output row, one load a tap."""

import torch
import triton
import triton.language as tl


@triton.jit
def depthwise_conv2d_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    x_batch,
    x_channel,
    x_row,
    weight_channel,
    weight_row,
    channels,
    height,
    width,
    side,
    BLOCK: tl.constexpr,
):
    """Convolves BLOCK neighbours of one row."""
    plane = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1)
    col = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    channel = plane % channels
    x_plane = x_ptr + plane // channels * x_batch + channel * x_channel
    total = tl.zeros([BLOCK], tl.float32) + tl.load(bias_ptr + channel).to(tl.float32)
    for i in range(side):
        y = row + i - side // 2
        for j in range(side):
            x = col + j - side // 2
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            pixel = tl.load(x_plane + y * x_row + x, mask=inside, other=0.0).to(tl.float32)
            tap = tl.load(weight_ptr + channel * weight_channel + i * weight_row + j)
            total += tap.to(tl.float32) * pixel
    out_at = out_ptr + (plane * height + row) * width + col
    tl.store(out_at, total.to(tl.float16), mask=col < width)


def depthwise_conv2d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Convolves x, float16[batch, channels, height, width], with any outer strides."""
    batch, channels, height, width = x.shape
    out = torch.empty((batch, channels, height, width), dtype=x.dtype, device=x.device)
    block = 64
    depthwise_conv2d_kernel[(batch * channels, height, triton.cdiv(width, block))](
        x,
        weight,
        bias,
        out,
        *x.stride()[:3],
        *weight.stride()[:2],
        channels,
        height,
        width,
        weight.shape[2],
        BLOCK=block,
        num_warps=1,
    )
    return out
