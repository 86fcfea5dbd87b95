"""One program a row, the row in registers."""

import torch
import triton
import triton.language as tl

WARPS = 8  # of 4 8 16


@triton.jit
def kernel(x_ptr, target_ptr, loss_ptr, x_stride, cols, ignored, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=float("-inf")).to(tl.float32)
    row_max = tl.max(x, axis=0)
    row_sum = tl.sum(tl.exp(x - row_max), axis=0)
    target = tl.load(target_ptr + row)
    kept = target != ignored
    picked = tl.load(x_ptr + row * x_stride + tl.where(kept, target, 0)).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(kept, tl.log(row_sum) - (picked - row_max), 0.0))


@triton.jit
def in_blocks(x_ptr, target_ptr, loss_ptr, x_stride, cols, ignored, BLOCK: tl.constexpr):
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
    target = tl.load(target_ptr + row)
    kept = target != ignored
    picked = tl.load(x_ptr + row * x_stride + tl.where(kept, target, 0)).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(kept, tl.log(row_sum) - (picked - row_max), 0.0))


def cross_entropy(logits, target, ignore_index):
    rows, cols = logits.shape
    loss = torch.empty((rows,), dtype=torch.float32, device=logits.device)
    call = (logits, target, loss, logits.stride(0), cols, ignore_index)
    BLOCK = triton.next_power_of_2(cols)
    if BLOCK <= 16384:
        kernel[(rows,)](*call, BLOCK=BLOCK, num_warps=WARPS)
    else:
        in_blocks[(rows,)](*call, BLOCK=4096, num_warps=WARPS)
    return loss
