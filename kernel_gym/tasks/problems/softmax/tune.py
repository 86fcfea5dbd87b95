"""Schedules of softmax: block and warps; the row as a whole in registers, or in two passes."""

from kernel_gym.tasks.tuning import Tuning

_KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def whole_row(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * cols + at, (e / tl.sum(e, axis=0)).to(tl.float16), mask=at < cols)


@triton.jit
def two_passes(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
    lane = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], -1e38, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_row + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(top, x)
        total = total * tl.exp(top - higher) + tl.exp(x - higher)
        top = higher
    row_max = tl.max(top, axis=0)
    row_sum = tl.sum(total * tl.exp(top - row_max), axis=0)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_row + at, mask=at < cols, other=float("-inf")).to(tl.float32)
        out = tl.exp(x - row_max) / row_sum
        tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=at < cols)


def softmax(x):
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    if $WHOLE and cols <= 16384:
        block = triton.next_power_of_2(cols)
        whole_row[(rows,)](x, out, x.stride(0), cols, BLOCK=block, num_warps=$WARPS)
    else:
        two_passes[(rows,)](x, out, x.stride(0), cols, BLOCK=$BLOCK, num_warps=$WARPS)
    return out
"""

TUNING = Tuning(
    space={"BLOCK": (128, 256, 512, 1024, 2048, 4096), "WARPS": (1, 2, 4, 8), "WHOLE": (0, 1)},
    template=_KERNEL.lstrip(),
)
