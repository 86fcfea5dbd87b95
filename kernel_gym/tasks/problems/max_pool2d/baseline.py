"""Maximum pooling: one program computes a strip of one output row from nine loads each."""

import torch
import triton
import triton.language as tl


@triton.jit
def max_pool2d_kernel(
    x_ptr,
    out_ptr,
    plane_stride,
    row_stride,
    height,
    width,
    out_height,
    out_width,
    BLOCK: tl.constexpr,
):
    """Pools BLOCK windows of one row."""
    plane = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1)
    col = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    for i in range(3):
        y = 2 * row - 1 + i
        for j in range(3):
            x = 2 * col - 1 + j
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            at = x_ptr + plane * plane_stride + y * row_stride + x
            value = tl.load(at, mask=inside, other=float("-inf")).to(tl.float32)
            best = tl.maximum(best, value)
    out_at = out_ptr + (plane * out_height + row) * out_width + col
    tl.store(out_at, best.to(tl.float16), mask=col < out_width)


def max_pool2d(x: torch.Tensor) -> torch.Tensor:
    """Pools x, float16[planes, height, width], with any outer strides."""
    planes, height, width = x.shape
    out_height, out_width = (height - 1) // 2 + 1, (width - 1) // 2 + 1
    out = torch.empty((planes, out_height, out_width), dtype=x.dtype, device=x.device)
    block = 64
    max_pool2d_kernel[(planes, out_height, triton.cdiv(out_width, block))](
        x,
        out,
        x.stride(0),
        x.stride(1),
        height,
        width,
        out_height,
        out_width,
        BLOCK=block,
        num_warps=1,
    )
    return out
