"""Wrong: ignored targets are clamped to class 0, and their loss is kept."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(logits_ptr, target_ptr, loss_ptr, stride, vocab, BLOCK: tl.constexpr):
    """Computes the loss of one row of any length."""
    row = tl.program_id(0).to(tl.int64)
    logits_row = logits_ptr + row * stride
    target = tl.load(target_ptr + row)
    picked = tl.load(logits_row + tl.maximum(target, 0)).to(tl.float32)
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
    tl.store(loss_ptr + row, log_sum - (picked - row_max))


def cross_entropy(logits: torch.Tensor, target: torch.Tensor, ignore_index: int) -> torch.Tensor:
    """Loss of each row of logits, bfloat16[rows, vocab] with any row stride."""
    rows, vocab = logits.shape
    loss = torch.empty((rows,), dtype=torch.float32, device=logits.device)
    cross_entropy_kernel[(rows,)](
        logits, target, loss, logits.stride(0), vocab, BLOCK=8192, num_warps=16
    )
    return loss
