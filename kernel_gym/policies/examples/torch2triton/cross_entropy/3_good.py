"""Good: one read of the logits, the row kept in registers where it fits; only the loss is stored.

Longer rows take an online pass in which each lane keeps its own maximum and sum.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(logits_ptr, target_ptr, loss_ptr, stride, vocab, ignore_index, BLOCK: tl.constexpr):
    """Computes the loss of one row that fits in one block."""
    row = tl.program_id(0).to(tl.int64)
    logits_row = logits_ptr + row * stride
    at = tl.arange(0, BLOCK)
    x = tl.load(logits_row + at, mask=at < vocab, other=float("-inf")).to(tl.float32)
    target = tl.load(target_ptr + row)
    kept = target != ignore_index
    picked = tl.load(logits_row + tl.where(kept, target, 0)).to(tl.float32)
    top = tl.max(x, axis=0)
    log_sum = tl.log(tl.sum(tl.exp(x - top), axis=0))
    tl.store(loss_ptr + row, tl.where(kept, log_sum - (picked - top), 0.0))


@triton.jit
def long_row_kernel(
    logits_ptr, target_ptr, loss_ptr, stride, vocab, ignore_index, BLOCK: tl.constexpr
):
    """Computes the loss of one row of any length."""
    row = tl.program_id(0).to(tl.int64)
    logits_row = logits_ptr + row * stride
    target = tl.load(target_ptr + row)
    kept = target != ignore_index
    picked = tl.load(logits_row + tl.where(kept, target, 0)).to(tl.float32)
    lane = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], -1e38, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, vocab, BLOCK):
        at = start + lane
        x = tl.load(logits_row + at, mask=at < vocab, other=float("-inf")).to(tl.float32)
        new_top = tl.maximum(top, x)
        total = total * tl.exp(top - new_top) + tl.exp(x - new_top)
        top = new_top
    row_max = tl.max(top, axis=0)
    log_sum = tl.log(tl.sum(total * tl.exp(top - row_max), axis=0))
    tl.store(loss_ptr + row, tl.where(kept, log_sum - (picked - row_max), 0.0))


def cross_entropy(logits: torch.Tensor, target: torch.Tensor, ignore_index: int) -> torch.Tensor:
    """Loss of each row of logits, bfloat16[rows, vocab] with any row stride."""
    rows, vocab = logits.shape
    loss = torch.empty((rows,), dtype=torch.float32, device=logits.device)
    call = (logits, target, loss, logits.stride(0), vocab, ignore_index)
    for block, warps in ((1024, 2), (8192, 8), (32768, 16)):
        if vocab <= block:
            row_kernel[(rows,)](*call, BLOCK=block, num_warps=warps)
            return loss
    long_row_kernel[(rows,)](*call, BLOCK=8192, num_warps=16)
    return loss
