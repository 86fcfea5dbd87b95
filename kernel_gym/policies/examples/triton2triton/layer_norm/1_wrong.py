"""Wrong: adds its own epsilon of 1e-12 instead of the one it is given."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    """Normalises one row that fits in one block."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, x - tl.sum(x, axis=0) / cols, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / cols + 1e-12)
    out = centred * scale * weight + bias
    tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=inside)


@triton.jit
def long_row_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    """Normalises one row of any length in three passes."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        total += tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / cols
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0).to(tl.float32)
        centred = tl.where(at < cols, x - mean, 0.0)
        squares += centred * centred
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / cols + 1e-12)
    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32)
        out = (x - mean) * scale * weight + bias
        tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=inside)


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Normalises the rows of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    for block, warps in ((1024, 2), (4096, 8), (16384, 16)):
        if cols <= block:
            row_kernel[(rows,)](
                x, weight, bias, out, x.stride(0), cols, BLOCK=block, num_warps=warps
            )
            return out
    long_row_kernel[(rows,)](x, weight, bias, out, x.stride(0), cols, BLOCK=8192, num_warps=16)
    return out
