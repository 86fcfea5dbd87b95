"""One program a block of queries of one head, with a running softmax over blocks of keys."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    q_row,
    k_row,
    v_row,
    heads,
    group,
    seq,
    kv_seq,
    scale,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Attends BLOCK queries of one head to the keys that they see."""
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    width = tl.arange(0, WIDTH)
    first = tl.program_id(1).to(tl.int64) * seq
    kv_first = (batch * (heads // group) + head // group).to(tl.int64) * kv_seq
    q = tl.load(
        q_ptr + (first + rows[:, None]) * q_row + width[None, :],
        mask=rows[:, None] < seq,
        other=0.0,
    )

    top = tl.full([BLOCK], -1e38, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    out = tl.zeros([BLOCK, WIDTH], tl.float32)
    for start in range(0, kv_seq, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        inside = keys[:, None] < kv_seq
        k = tl.load(
            k_ptr + (kv_first + keys[:, None]) * k_row + width[None, :], mask=inside, other=0.0
        )
        v = tl.load(
            v_ptr + (kv_first + keys[:, None]) * v_row + width[None, :], mask=inside, other=0.0
        )
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(keys[None, :] < kv_seq, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, axis=1)
        out = tl.dot(weights.to(v.dtype), v, out * shrink[:, None])
        top = new_top

    at = (first + rows[:, None]) * WIDTH + width[None, :]
    tl.store(out_ptr + at, (out / total[:, None]).to(q.dtype), mask=rows[:, None] < seq)


def cross_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
) -> torch.Tensor:
    """Attention of float16[batch, heads, tokens, head_dim] tensors whose rows may be padded."""
    batch, heads, seq, head_dim = q.shape
    out = torch.empty((batch, heads, seq, head_dim), dtype=q.dtype, device=q.device)
    attention_kernel[(triton.cdiv(seq, 64), batch * heads)](
        q,
        k,
        v,
        out,
        q.stride(2),
        k.stride(2),
        v.stride(2),
        heads,
        heads // k.shape[1],
        seq,
        k.shape[2],
        scale,
        WIDTH=head_dim,
        BLOCK=64,
    )
    return out
