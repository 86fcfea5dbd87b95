"""Log-sum-exp in Gluon: one program a row, a pass for the maximum and one for the sum."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def logsumexp_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: gl.constexpr):
    """Reduces one row."""
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
    out = row_max + gl.log(gl.sum(total, axis=0))
    gl.store(out_ptr + row, out.to(gl.float16))


def logsumexp(x: torch.Tensor) -> torch.Tensor:
    """Log-sum-exp of the rows of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows,), dtype=x.dtype, device=x.device)
    logsumexp_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=1024)
    return out
