"""Row sums in Gluon: one program a row adds its blocks up."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def row_sum_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: gl.constexpr):
    """Sums one row."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    row = gl.program_id(0).to(gl.int64)
    lane = gl.arange(0, BLOCK, layout=LAYOUT)
    total = gl.zeros([BLOCK], gl.float32, layout=LAYOUT)
    for start in range(0, cols, BLOCK):
        at = start + lane
        total += gl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0).to(gl.float32)
    gl.store(out_ptr + row, gl.sum(total, axis=0).to(gl.bfloat16))


def row_sum(x: torch.Tensor) -> torch.Tensor:
    """Sums of the rows of x, bfloat16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows,), dtype=x.dtype, device=x.device)
    row_sum_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=1024)
    return out
