"""Pixel shuffle: one program moves a strip of one input row to pixels that lie a factor apart."""

import torch
import triton
import triton.language as tl


@triton.jit
def pixel_shuffle_kernel(
    x_ptr,
    out_ptr,
    x_batch,
    x_channel,
    x_row,
    deep,
    height,
    width,
    factor,
    BLOCK: tl.constexpr,
):
    """Moves BLOCK neighbours."""
    plane = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1)
    col = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    batch = plane // deep
    channel = plane % deep
    j = channel % factor
    i = channel // factor % factor
    x_at = x_ptr + batch * x_batch + channel * x_channel + row * x_row + col
    values = tl.load(x_at, mask=col < width)
    out_plane = plane // (factor * factor)
    out_row = out_plane * height * factor + row * factor + i
    out_at = out_ptr + out_row * width * factor + col * factor + j
    tl.store(out_at, values, mask=col < width)


def pixel_shuffle(x: torch.Tensor, factor: int) -> torch.Tensor:
    """Rearranges x, float16[batch, channels, height, width], with any outer strides."""
    batch, deep, height, width = x.shape
    shape = (batch, deep // factor**2, height * factor, width * factor)
    out = torch.empty(shape, dtype=x.dtype, device=x.device)
    block = 64
    pixel_shuffle_kernel[(batch * deep, height, triton.cdiv(width, block))](
        x, out, *x.stride()[:3], deep, height, width, factor, BLOCK=block, num_warps=1
    )
    return out
