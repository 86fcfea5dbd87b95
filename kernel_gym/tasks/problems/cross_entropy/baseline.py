"""Cross entropy: one program a row, a pass for the maximum and one for the sum."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, loss_ptr, stride, vocab, ignore_index, BLOCK: tl.constexpr
):
    """Computes the loss of one row."""
    row = tl.program_id(0).to(tl.int64)
    logits_row = logits_ptr + row * stride
    target = tl.load(target_ptr + row)
    lane = tl.arange(0, BLOCK)

    top = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, vocab, BLOCK):
        at = start + lane
        x = tl.load(logits_row + at, mask=at < vocab, other=float("-inf")).to(tl.float32)
        top = tl.maximum(top, x)
    row_max = tl.max(top, axis=0)

    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, vocab, BLOCK):
        at = start + lane
        x = tl.load(logits_row + at, mask=at < vocab, other=float("-inf")).to(tl.float32)
        total += tl.exp(x - row_max)
    log_sum = tl.log(tl.sum(total, axis=0))

    kept = target != ignore_index
    picked = tl.load(logits_row + tl.where(kept, target, 0)).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(kept, log_sum - (picked - row_max), 0.0))


def cross_entropy(logits: torch.Tensor, target: torch.Tensor, ignore_index: int) -> torch.Tensor:
    """Loss of each row of logits, bfloat16[rows, vocab] with any row stride."""
    rows, vocab = logits.shape
    loss = torch.empty((rows,), dtype=torch.float32, device=logits.device)
    cross_entropy_kernel[(rows,)](
        logits, target, loss, logits.stride(0), vocab, ignore_index, BLOCK=512
    )
    return loss
