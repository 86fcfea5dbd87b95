"""Interpolation from three neighbours: one program a strip of points of one channel."""

import torch
import triton
import triton.language as tl


@triton.jit
def interpolate_kernel(
    x_ptr,
    index_ptr,
    weight_ptr,
    out_ptr,
    x_row,
    index_row,
    weight_row,
    channels,
    count,
    BLOCK: tl.constexpr,
):
    """Interpolates BLOCK points."""
    plane = tl.program_id(0).to(tl.int64)
    batch = plane // channels
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    total = tl.zeros([BLOCK], tl.float32)
    for j in range(3):
        place = tl.load(index_ptr + (batch * count + at) * index_row + j, mask=inside, other=0)
        weight = tl.load(weight_ptr + (batch * count + at) * weight_row + j, mask=inside, other=0.0)
        total += weight * tl.load(x_ptr + plane * x_row + place, mask=inside, other=0.0).to(
            tl.float32
        )
    tl.store(out_ptr + plane * count + at, total.to(tl.float16), mask=inside)


def three_interpolate(x: torch.Tensor, index: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Interpolates x, float16[batch, channels, known]; rows of all tensors may be padded."""
    batch, channels, _ = x.shape
    count = index.shape[1]
    out = torch.empty((batch, channels, count), dtype=x.dtype, device=x.device)
    interpolate_kernel[(batch * channels, triton.cdiv(count, 256))](
        x,
        index,
        weight,
        out,
        x.stride(1),
        index.stride(1),
        weight.stride(1),
        channels,
        count,
        BLOCK=256,
    )
    return out
