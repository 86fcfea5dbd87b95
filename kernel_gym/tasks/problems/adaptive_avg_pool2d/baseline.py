"""Adaptive average pooling: one program a cell sums its window row by row."""

import torch
import triton
import triton.language as tl


@triton.jit
def adaptive_avg_pool2d_kernel(
    x_ptr, out_ptr, plane_stride, row_stride, height, width, cells, BLOCK: tl.constexpr
):
    """Averages one window."""
    plane = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1)
    j = tl.program_id(2)
    top = i * height // cells
    bottom = ((i + 1) * height + cells - 1) // cells
    left = j * width // cells
    right = ((j + 1) * width + cells - 1) // cells
    total = tl.zeros([BLOCK], tl.float32)
    for y in range(top, bottom):
        for start in range(left, right, BLOCK):
            x = start + tl.arange(0, BLOCK)
            at = x_ptr + plane * plane_stride + y * row_stride + x
            total += tl.load(at, mask=x < right, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / ((bottom - top) * (right - left))
    tl.store(out_ptr + (plane * cells + i) * cells + j, mean.to(tl.float16))


def adaptive_avg_pool2d(x: torch.Tensor, num_cells: int) -> torch.Tensor:
    """Pools x, float16[planes, height, width], with any outer strides."""
    planes, height, width = x.shape
    out = torch.empty((planes, num_cells, num_cells), dtype=x.dtype, device=x.device)
    adaptive_avg_pool2d_kernel[(planes, num_cells, num_cells)](
        x, out, x.stride(0), x.stride(1), height, width, num_cells, BLOCK=64, num_warps=1
    )
    return out
