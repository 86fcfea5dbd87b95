"""Batch norm, residual and ReLU: one program handles a strip of one channel of one image."""

import torch
import triton
import triton.language as tl


@triton.jit
def batch_norm_add_relu_kernel(
    x_ptr,
    residual_ptr,
    mean_ptr,
    variance_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    x_batch,
    x_channel,
    residual_batch,
    residual_channel,
    channels,
    pixels,
    eps,
    BLOCK: tl.constexpr,
):
    """Normalises BLOCK neighbours with the channel's statistics and adds the residual."""
    plane = tl.program_id(0).to(tl.int64)
    image = plane // channels
    channel = plane % channels
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < pixels
    mean = tl.load(mean_ptr + channel)
    variance = tl.load(variance_ptr + channel)
    weight = tl.load(weight_ptr + channel)
    bias = tl.load(bias_ptr + channel)
    x_at = x_ptr + image * x_batch + channel * x_channel + at
    residual_at = residual_ptr + image * residual_batch + channel * residual_channel + at
    x = tl.load(x_at, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_at, mask=inside, other=0.0).to(tl.float32)
    out = (x - mean) / tl.sqrt(variance + eps) * weight + bias + residual
    tl.store(out_ptr + plane * pixels + at, tl.maximum(out, 0.0).to(tl.float16), mask=inside)


def batch_norm_add_relu(
    x: torch.Tensor,
    residual: torch.Tensor,
    mean: torch.Tensor,
    variance: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    """Normalises x, float16[batch, channels, pixels] with any outer strides."""
    batch, channels, pixels = x.shape
    out = torch.empty((batch, channels, pixels), dtype=x.dtype, device=x.device)
    block = 128
    batch_norm_add_relu_kernel[(batch * channels, triton.cdiv(pixels, block))](
        x,
        residual,
        mean,
        variance,
        weight,
        bias,
        out,
        *x.stride()[:2],
        *residual.stride()[:2],
        channels,
        pixels,
        eps,
        BLOCK=block,
    )
    return out
