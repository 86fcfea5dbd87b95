"""Bilinear interpolation: one program computes a strip of one output row from four loads each."""

import torch
import triton
import triton.language as tl


@triton.jit
def interpolate_kernel(
    x_ptr,
    out_ptr,
    plane_stride,
    row_stride,
    height,
    width,
    to_height,
    to_width,
    BLOCK: tl.constexpr,
):
    """Blends BLOCK neighbours of one row."""
    plane = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1)
    col = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside = col < to_width
    y = (row.to(tl.float32) + 0.5) * height / to_height - 0.5
    y = tl.minimum(tl.maximum(y, 0.0), height - 1.0)
    x = (col.to(tl.float32) + 0.5) * width / to_width - 0.5
    x = tl.minimum(tl.maximum(x, 0.0), width - 1.0)
    top = y.to(tl.int32)
    left = x.to(tl.int32)
    bottom = tl.minimum(top + 1, height - 1)
    right = tl.minimum(left + 1, width - 1)
    down = y - top
    across = x - left

    base = x_ptr + plane * plane_stride
    a = tl.load(base + top * row_stride + left, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(base + top * row_stride + right, mask=inside, other=0.0).to(tl.float32)
    c = tl.load(base + bottom * row_stride + left, mask=inside, other=0.0).to(tl.float32)
    d = tl.load(base + bottom * row_stride + right, mask=inside, other=0.0).to(tl.float32)
    upper = a * (1.0 - across) + b * across
    lower = c * (1.0 - across) + d * across
    out = upper * (1.0 - down) + lower * down
    out_at = out_ptr + (plane * to_height + row) * to_width + col
    tl.store(out_at, out.to(tl.float16), mask=inside)


def interpolate_bilinear(x: torch.Tensor, to_height: int, to_width: int) -> torch.Tensor:
    """Resizes x, float16[planes, height, width], with any outer strides."""
    planes, height, width = x.shape
    out = torch.empty((planes, to_height, to_width), dtype=x.dtype, device=x.device)
    block = 64
    interpolate_kernel[(planes, to_height, triton.cdiv(to_width, block))](
        x,
        out,
        x.stride(0),
        x.stride(1),
        height,
        width,
        to_height,
        to_width,
        BLOCK=block,
        num_warps=1,
    )
    return out
