"""Log-softmax in Gluon: one program a row; passes for the maximum, the sum and the output."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def log_softmax_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: gl.constexpr):
    """Subtracts the logarithm of the row's sum of exponentials."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    row = gl.program_id(0).to(gl.int64)
    x_row = x_ptr + row * x_stride
    lane = gl.arange(0, BLOCK, layout=LAYOUT)

    top = gl.full([BLOCK], float("-inf"), gl.float32, layout=LAYOUT)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = gl.load(x_row + at, mask=at < cols, other=float("-inf")).to(gl.float32)
        top = gl.maximum(top, x)
    row_max = gl.max(top, axis=0)

    total = gl.zeros([BLOCK], gl.float32, layout=LAYOUT)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = gl.load(x_row + at, mask=at < cols, other=float("-inf")).to(gl.float32)
        total += gl.exp(x - row_max)
    log_sum = gl.log(gl.sum(total, axis=0))

    for start in range(0, cols, BLOCK):
        at = start + lane
        x = gl.load(x_row + at, mask=at < cols, other=0.0).to(gl.float32)
        out = x - row_max - log_sum
        gl.store(out_ptr + row * cols + at, out, mask=at < cols)


def log_softmax(x: torch.Tensor) -> torch.Tensor:
    """Log-softmax over the last axis of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=torch.float32, device=x.device)
    log_softmax_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=1024)
    return out
