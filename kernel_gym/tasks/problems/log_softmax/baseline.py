"""Log-softmax: one program a row; passes for the maximum, the sum and the output."""

import torch
import triton
import triton.language as tl


@triton.jit
def log_softmax_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    """Subtracts the logarithm of the row's sum of exponentials."""
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
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
    log_sum = tl.log(tl.sum(total, axis=0))

    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_row + at, mask=at < cols, other=0.0).to(tl.float32)
        out = x - row_max - log_sum
        tl.store(out_ptr + row * cols + at, out, mask=at < cols)


def log_softmax(x: torch.Tensor) -> torch.Tensor:
    """Log-softmax over the last axis of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=torch.float32, device=x.device)
    log_softmax_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=1024)
    return out
