"""Good: one read of the row where it fits in registers, else an online pass in large blocks."""

import torch
import triton
import triton.language as tl

TIERS = (
    (256, 1),
    (512, 1),
    (1024, 2),
    (2048, 4),
    (4096, 8),
    (8192, 8),
    (32768, 16),
    (65536, 16),
)


@triton.jit
def row_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    """Softmax of one row that fits in one block."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    out = e * (1.0 / tl.sum(e, axis=0))
    tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=at < cols)


@triton.jit
def long_row_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    """Softmax of one row of any length: an online pass for maximum and sum, then the output."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], -1e30, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        new_top = tl.maximum(top, x)
        total = total * tl.exp(top - new_top) + tl.exp(x - new_top)
        top = new_top
    row_max = tl.max(top, axis=0)
    scale = 1.0 / tl.sum(total * tl.exp(top - row_max), axis=0)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        out = tl.exp(x - row_max) * scale
        tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=at < cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    for block, warps in TIERS:
        if cols <= block:
            row_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=block, num_warps=warps)
            return out
    long_row_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=16384, num_warps=16)
    return out
