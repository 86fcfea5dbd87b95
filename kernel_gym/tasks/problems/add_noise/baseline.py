"""Forward diffusion: one program mixes a short strip of one sample."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_noise_kernel(
    x_ptr,
    noise_ptr,
    alphas_ptr,
    timestep_ptr,
    out_ptr,
    x_stride,
    noise_stride,
    pixels,
    BLOCK: tl.constexpr,
):
    """Looks the sample's alpha up and mixes BLOCK neighbours."""
    sample = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < pixels
    alpha = tl.load(alphas_ptr + tl.load(timestep_ptr + sample))
    x = tl.load(x_ptr + sample * x_stride + at, mask=inside, other=0.0).to(tl.float32)
    noise = tl.load(noise_ptr + sample * noise_stride + at, mask=inside, other=0.0).to(tl.float32)
    out = tl.sqrt(alpha) * x + tl.sqrt(1.0 - alpha) * noise
    tl.store(out_ptr + sample * pixels + at, out.to(tl.float16), mask=inside)


def add_noise(
    x: torch.Tensor, noise: torch.Tensor, alphas: torch.Tensor, timestep: torch.Tensor
) -> torch.Tensor:
    """Mixes x and noise, float16[batch, pixels] with any row strides."""
    batch, pixels = x.shape
    out = torch.empty((batch, pixels), dtype=x.dtype, device=x.device)
    block = 128
    add_noise_kernel[(batch, triton.cdiv(pixels, block))](
        x, noise, alphas, timestep, out, x.stride(0), noise.stride(0), pixels, BLOCK=block
    )
    return out
