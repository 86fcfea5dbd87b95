"""3-D average pooling: one program a strip of outputs of all channels."""

import torch
import triton
import triton.language as tl


@triton.jit
def avg_pool3d_kernel(
    x_ptr,
    out_ptr,
    x_row,
    depth,
    height,
    out_depth,
    out_height,
    out_width,
    total,
    window,
    stride,
    BLOCK: tl.constexpr,
):
    """Computes BLOCK means."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    column = at % out_width
    line = at // out_width % out_height
    slab = at // (out_width * out_height) % out_depth
    plane = at // (out_width * out_height * out_depth)
    sum = tl.zeros([BLOCK], tl.float32)
    for i in range(0, window):
        for j in range(0, window):
            for k in range(0, window):
                row = (plane * depth + slab * stride + i) * height + line * stride + j
                place = row * x_row + column * stride + k
                sum += tl.load(x_ptr + place, mask=at < total, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, (sum / (window * window * window)).to(tl.float16), mask=at < total)


def avg_pool3d(x: torch.Tensor, window: int, stride: int) -> torch.Tensor:
    """Pools x, float16[batch, channels, depth, height, width], whose rows may be padded."""
    batch, channels, *sides = x.shape
    counts = [(side - window) // stride + 1 for side in sides]
    out = torch.empty((batch, channels, *counts), dtype=x.dtype, device=x.device)
    total = out.numel()
    avg_pool3d_kernel[(triton.cdiv(total, 256),)](
        x, out, x.stride(3), sides[0], sides[1], *counts, total, window, stride, BLOCK=256
    )
    return out
