"""Row-wise softmax in Gluon: one program a row, three passes over the row in blocks."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: gl.constexpr):
    """Finds the row's maximum, then its sum of exponentials, then writes the quotient."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    row = gl.program_id(0).to(gl.int64)
    x_row = x_ptr + row * x_stride
    out_row = out_ptr + row * cols
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
    row_sum = gl.sum(total, axis=0)

    for start in range(0, cols, BLOCK):
        at = start + lane
        x = gl.load(x_row + at, mask=at < cols, other=float("-inf")).to(gl.float32)
        gl.store(out_row + at, gl.exp(x - row_max) / row_sum, mask=at < cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    softmax_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=1024)
    return out
