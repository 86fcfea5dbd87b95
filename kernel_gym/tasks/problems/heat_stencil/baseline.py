"""Heat diffusion: one program handles a strip of one grid row and reads its five neighbours."""

import torch
import triton
import triton.language as tl


@triton.jit
def heat_stencil_kernel(
    t_ptr,
    power_ptr,
    out_ptr,
    t_grid,
    t_row,
    power_grid,
    power_row,
    rate,
    height,
    width,
    BLOCK: tl.constexpr,
):
    """Advances BLOCK neighbours of one row by a step."""
    grid = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1).to(tl.int64)
    col = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside = col < width
    t_base = t_ptr + grid * t_grid
    above = tl.maximum(row - 1, 0)
    below = tl.minimum(row + 1, height - 1)
    left = tl.maximum(col - 1, 0)
    right = tl.minimum(col + 1, width - 1)
    t = tl.load(t_base + row * t_row + col, mask=inside, other=0.0)
    north = tl.load(t_base + above * t_row + col, mask=inside, other=0.0)
    south = tl.load(t_base + below * t_row + col, mask=inside, other=0.0)
    west = tl.load(t_base + row * t_row + left, mask=inside, other=0.0)
    east = tl.load(t_base + row * t_row + right, mask=inside, other=0.0)
    power = tl.load(power_ptr + grid * power_grid + row * power_row + col, mask=inside, other=0.0)
    out = t + rate * (north + south + west + east - 4.0 * t) + power
    tl.store(out_ptr + (grid * height + row) * width + col, out, mask=inside)


def heat_stencil(t: torch.Tensor, power: torch.Tensor, rate: float) -> torch.Tensor:
    """One step on each grid of t, float32[batch, height, width] with any outer strides."""
    batch, height, width = t.shape
    out = torch.empty((batch, height, width), dtype=t.dtype, device=t.device)
    block = 128
    heat_stencil_kernel[(batch, height, triton.cdiv(width, block))](
        t,
        power,
        out,
        t.stride(0),
        t.stride(1),
        power.stride(0),
        power.stride(1),
        rate,
        height,
        width,
        BLOCK=block,
    )
    return out
