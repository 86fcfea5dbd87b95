"""Grid sample: one program computes a strip of places of one channel, four loads each."""

import torch
import triton
import triton.language as tl


@triton.jit
def grid_sample_kernel(
    x_ptr,
    grid_ptr,
    out_ptr,
    x_batch,
    x_channel,
    x_row,
    grid_batch,
    grid_place,
    channels,
    height,
    width,
    places,
    BLOCK: tl.constexpr,
):
    """Samples BLOCK places; a corner outside the image is masked to zero."""
    batch = (tl.program_id(0) // channels).to(tl.int64)
    channel = (tl.program_id(0) % channels).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < places
    grid = grid_ptr + batch * grid_batch + at.to(tl.int64) * grid_place
    x = ((tl.load(grid, mask=inside, other=0.0) + 1.0) * width - 1.0) * 0.5
    y = ((tl.load(grid + 1, mask=inside, other=0.0) + 1.0) * height - 1.0) * 0.5
    left = tl.floor(x)
    top = tl.floor(y)
    plane = x_ptr + batch * x_batch + channel * x_channel

    total = tl.zeros([BLOCK], tl.float32)
    for dy in range(2):
        for dx in range(2):
            col = left.to(tl.int32) + dx
            row = top.to(tl.int32) + dy
            weight = (1.0 - tl.abs(x - col)) * (1.0 - tl.abs(y - row))
            valid = inside & (col >= 0) & (col < width) & (row >= 0) & (row < height)
            value = tl.load(plane + row.to(tl.int64) * x_row + col, mask=valid, other=0.0)
            total += weight * value.to(tl.float32)
    out_at = out_ptr + (batch * channels + channel) * places + at
    tl.store(out_at, total.to(tl.float16), mask=inside)


def grid_sample(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    """Samples x, float16[batch, channels, height, width], with any outer strides."""
    batch, channels, height, width = x.shape
    places = grid.shape[1]
    out = torch.empty((batch, channels, places), dtype=x.dtype, device=x.device)
    block = 128
    grid_sample_kernel[(batch * channels, triton.cdiv(places, block))](
        x,
        grid,
        out,
        *x.stride()[:3],
        *grid.stride()[:2],
        channels,
        height,
        width,
        places,
        BLOCK=block,
    )
    return out
