"""Wrong: the carry holds the sum of the last block only, not of all before it."""

import torch
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    """Scans one row; `carry` comes from the block before."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    carry = 0.0
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0).to(tl.float32)
        out = tl.cumsum(x, axis=0) + carry
        tl.store(out_ptr + row * cols + at, out.to(tl.bfloat16), mask=at < cols)
        carry = tl.sum(x, axis=0)


def cumsum(x: torch.Tensor) -> torch.Tensor:
    """Prefix sums of x, bfloat16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    cumsum_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=512, num_warps=4)
    return out
