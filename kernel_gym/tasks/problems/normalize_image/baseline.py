"""Image normalisation: one program makes a strip of one plane from bytes that lie apart."""

import torch
import triton
import triton.language as tl


@triton.jit
def normalize_image_kernel(
    x_ptr,
    mean_ptr,
    std_ptr,
    out_ptr,
    x_batch,
    x_pixel,
    channels,
    pixels,
    BLOCK: tl.constexpr,
):
    """Normalises BLOCK pixels of one channel."""
    plane = tl.program_id(0).to(tl.int64)
    channel = plane % channels
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < pixels
    x_at = x_ptr + plane // channels * x_batch + at.to(tl.int64) * x_pixel + channel
    x = tl.load(x_at, mask=inside, other=0).to(tl.float32)
    mean = tl.load(mean_ptr + channel)
    std = tl.load(std_ptr + channel)
    out = (x / 255.0 - mean) / std
    tl.store(out_ptr + plane * pixels + at, out.to(tl.float16), mask=inside)


def normalize_image(x: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
    """Normalises x, uint8[batch, pixels, channels], with any outer strides."""
    batch, pixels, channels = x.shape
    out = torch.empty((batch, channels, pixels), dtype=torch.float16, device=x.device)
    block = 256
    normalize_image_kernel[(batch * channels, triton.cdiv(pixels, block))](
        x, mean, std, out, x.stride(0), x.stride(1), channels, pixels, BLOCK=block
    )
    return out
