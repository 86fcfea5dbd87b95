"""CTC loss: log-sums of all frames first, then one program a batch entry walks its frames.

The states of two frames lie in scratch memory, through which neighbours see each other.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def log_sum_kernel(
    logits_ptr, log_sum_ptr, frame_stride, batch_stride, classes, BLOCK: tl.constexpr
):
    """Logarithm of the sum of exponentials of one frame of one batch entry."""
    frame = tl.program_id(0).to(tl.int64)
    batch = tl.program_id(1).to(tl.int64)
    row = logits_ptr + frame * frame_stride + batch * batch_stride
    lane = tl.arange(0, BLOCK)
    low = float("-inf")
    top = tl.full([BLOCK], low, tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + lane
        top = tl.maximum(top, tl.load(row + at, mask=at < classes, other=low))
    row_max = tl.max(top, axis=0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, classes, BLOCK):
        at = start + lane
        total += tl.exp(tl.load(row + at, mask=at < classes, other=low) - row_max)
    log_sum = row_max + tl.log(tl.sum(total, axis=0))
    tl.store(log_sum_ptr + batch * tl.num_programs(0) + frame, log_sum)


@triton.jit
def ctc_loss_kernel(
    logits_ptr,
    log_sum_ptr,
    target_ptr,
    frame_count_ptr,
    label_count_ptr,
    scratch_ptr,
    loss_ptr,
    frame_stride,
    batch_stride,
    target_stride,
    frames,
    BLOCK: tl.constexpr,
):
    """Computes the forward variables of one batch entry; `low` stands for minus infinity."""
    low = -1e30
    batch = tl.program_id(0).to(tl.int64)
    frame_count = tl.load(frame_count_ptr + batch)
    count = tl.load(label_count_ptr + batch)
    logits = logits_ptr + batch * batch_stride
    log_sum = log_sum_ptr + batch * frames
    target = target_ptr + batch * target_stride
    scratch = scratch_ptr + batch * 2 * BLOCK

    state = tl.arange(0, BLOCK)
    used = state < 2 * count + 1
    is_label = state % 2 == 1
    label = tl.load(target + state // 2, mask=is_label & used, other=0)
    before = tl.load(target + state // 2 - 1, mask=is_label & used & (state > 2), other=0)
    skips = is_label & (state > 2) & (label != before)

    alpha = tl.load(logits + label, mask=used & (state < 2), other=low) - tl.load(log_sum)
    for t in range(1, frame_count):
        here = scratch + (t % 2) * BLOCK
        tl.store(here + state, alpha)
        tl.debug_barrier()
        near = tl.load(here + state - 1, mask=state > 0, other=low)
        far = tl.load(here + state - 2, mask=skips, other=low)
        top = tl.maximum(alpha, tl.maximum(near, far))
        total = tl.exp(alpha - top) + tl.exp(near - top) + tl.exp(far - top)
        emitted = tl.load(logits + t * frame_stride + label, mask=used, other=low)
        emitted -= tl.load(log_sum + t)
        alpha = tl.maximum(top + tl.log(total) + emitted, low)

    last = (state == 2 * count) | ((state == 2 * count - 1) & (count > 0))
    ends = tl.where(last, alpha, low)
    top = tl.max(ends, axis=0)
    total = tl.sum(tl.where(last, tl.exp(ends - top), 0.0), axis=0)
    tl.store(loss_ptr + batch, -(top + tl.log(total)))


def ctc_loss(
    logits: torch.Tensor,
    target: torch.Tensor,
    frame_count: torch.Tensor,
    label_count: torch.Tensor,
) -> torch.Tensor:
    """Loss of logits, float32[frames, batch, classes], with any outer strides."""
    frames, batch, classes = logits.shape
    block = triton.next_power_of_2(2 * target.shape[1] + 1)
    loss = torch.empty((batch,), dtype=torch.float32, device=logits.device)
    log_sum = torch.empty((batch, frames), dtype=torch.float32, device=logits.device)
    scratch = torch.empty((batch, 2, block), dtype=torch.float32, device=logits.device)
    log_sum_kernel[(frames, batch)](
        logits, log_sum, logits.stride(0), logits.stride(1), classes, BLOCK=128
    )
    ctc_loss_kernel[(batch,)](
        logits,
        log_sum,
        target,
        frame_count,
        label_count,
        scratch,
        loss,
        logits.stride(0),
        logits.stride(1),
        target.stride(0),
        frames,
        BLOCK=block,
    )
    return loss
