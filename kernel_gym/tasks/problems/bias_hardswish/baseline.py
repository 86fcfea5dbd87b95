"""Bias and hard swish: one program handles a short strip of one channel of one image."""

import torch
import triton
import triton.language as tl


@triton.jit
def bias_hardswish_kernel(
    x_ptr, bias_ptr, out_ptr, batch_stride, channel_stride, channels, pixels, BLOCK: tl.constexpr
):
    """Adds the channel's bias to BLOCK neighbours and applies hard swish."""
    image = (tl.program_id(0) // channels).to(tl.int64)
    channel = (tl.program_id(0) % channels).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < pixels
    source = x_ptr + image * batch_stride + channel * channel_stride + at
    y = tl.load(source, mask=inside, other=0.0).to(tl.float32)
    y += tl.load(bias_ptr + channel).to(tl.float32)
    out = y * tl.minimum(tl.maximum(y + 3.0, 0.0), 6.0) / 6.0
    target = out_ptr + tl.program_id(0).to(tl.int64) * pixels + at
    tl.store(target, out.to(tl.float16), mask=inside)


def bias_hardswish(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Hard swish of x + bias, float16[batch, channels, pixels] with any outer strides."""
    batch, channels, pixels = x.shape
    out = torch.empty((batch, channels, pixels), dtype=x.dtype, device=x.device)
    block = 128
    bias_hardswish_kernel[(batch * channels, triton.cdiv(pixels, block))](
        x, bias, out, x.stride(0), x.stride(1), channels, pixels, BLOCK=block
    )
    return out
