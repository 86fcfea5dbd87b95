"""One program a row, in blocks."""

import torch
import triton
import triton.language as tl

BLOCK = 512  # of 128 256 512 1024 2048
WARPS = 4  # of 1 2 4 8


@triton.jit
def kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], -1e38, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(top, x)
        total = total * tl.exp(top - higher) + tl.exp(x - higher)
        top = higher
    row_max = tl.max(top, axis=0)
    row_sum = tl.sum(total * tl.exp(top - row_max), axis=0)
    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=float("-inf")).to(tl.float32)
        out = tl.exp(x - row_max) / row_sum
        tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=inside)


def softmax(x):
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=BLOCK, num_warps=WARPS)
    return out
