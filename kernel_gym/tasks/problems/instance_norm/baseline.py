"""Instance normalisation: one program a channel of an image, three passes over its pixels."""

import torch
import triton
import triton.language as tl


@triton.jit
def instance_norm_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    batch_stride,
    channel_stride,
    channels,
    pixels,
    eps,
    BLOCK: tl.constexpr,
):
    """Finds mean and variance of one channel and normalises it."""
    plane = tl.program_id(0).to(tl.int64)
    channel = plane % channels
    x_plane = x_ptr + plane // channels * batch_stride + channel * channel_stride
    lane = tl.arange(0, BLOCK)

    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, pixels, BLOCK):
        at = start + lane
        total += tl.load(x_plane + at, mask=at < pixels, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / pixels

    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, pixels, BLOCK):
        at = start + lane
        x = tl.load(x_plane + at, mask=at < pixels, other=0.0).to(tl.float32)
        centred = tl.where(at < pixels, x - mean, 0.0)
        squares += centred * centred
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / pixels + eps)
    weight = tl.load(weight_ptr + channel).to(tl.float32)
    bias = tl.load(bias_ptr + channel).to(tl.float32)

    for start in range(0, pixels, BLOCK):
        at = start + lane
        x = tl.load(x_plane + at, mask=at < pixels, other=0.0).to(tl.float32)
        out = (x - mean) * scale * weight + bias
        tl.store(out_ptr + plane * pixels + at, out.to(tl.float16), mask=at < pixels)


def instance_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Normalises x, float16[batch, channels, pixels] with any outer strides."""
    batch, channels, pixels = x.shape
    out = torch.empty((batch, channels, pixels), dtype=x.dtype, device=x.device)
    instance_norm_kernel[(batch * channels,)](
        x, weight, bias, out, x.stride(0), x.stride(1), channels, pixels, eps, BLOCK=512
    )
    return out
