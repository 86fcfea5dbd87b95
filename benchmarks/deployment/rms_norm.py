"""RMS normalisation: one program a row, which is read once if it fits into one block."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, weight_ptr, out_ptr, x_stride, cols, eps, BLOCK: tl.constexpr):
    """Normalises one row that fits in one block."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / cols + eps)
    tl.store(out_ptr + row * cols + at, (x * scale * weight).to(tl.float16), mask=inside)


@triton.jit
def long_row_kernel(x_ptr, weight_ptr, out_ptr, x_stride, cols, eps, BLOCK: tl.constexpr):
    """Normalises one row of any length in two passes."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0).to(tl.float32)
        squares += x * x
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * cols + at, (x * scale * weight).to(tl.float16), mask=inside)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Normalises the rows of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    for block, warps in ((256, 1), (1024, 2), (4096, 8), (16384, 16)):
        if cols <= block:
            row_kernel[(rows,)](
                x, weight, out, x.stride(0), cols, eps, BLOCK=block, num_warps=warps
            )
            return out
    long_row_kernel[(rows,)](x, weight, out, x.stride(0), cols, eps, BLOCK=8192, num_warps=16)
    return out
