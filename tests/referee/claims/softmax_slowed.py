"""The baseline of a false claim: the plain kernel with blocks that are far too short."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    """Finds the row's maximum, then its sum of exponentials, then writes the quotient."""
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
    out_row = out_ptr + row * cols
    lane = tl.arange(0, BLOCK)

    top = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_row + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        top = tl.maximum(top, x)
    row_max = tl.max(top, axis=0)

    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_row + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        total += tl.exp(x - row_max)
    row_sum = tl.sum(total, axis=0)

    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_row + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        tl.store(out_row + at, tl.exp(x - row_max) / row_sum, mask=at < cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    softmax_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=64)
    return out
