"""Grouped attention: few queries a program while sequences are short, base-2 exponentials."""

import torch
import triton
import triton.language as tl


@triton.jit
def gqa_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    q_batch,
    q_head,
    q_row,
    k_batch,
    k_head,
    k_row,
    v_batch,
    v_head,
    v_row,
    heads,
    group,
    seq,
    scale,
    WIDTH: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
):
    """Attends QUERIES queries of one head to the keys up to the last of them."""
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    first = (tl.cdiv(seq, QUERIES) - 1 - tl.program_id(0)) * QUERIES
    end = tl.minimum(first + QUERIES, seq)
    rows = first + tl.arange(0, QUERIES)
    width = tl.arange(0, WIDTH)
    lane = tl.arange(0, KEYS)
    q = tl.load(
        q_ptr + batch * q_batch + head * q_head + rows[:, None] * q_row + width[None, :],
        mask=rows[:, None] < seq,
        other=0.0,
    )
    k_base = k_ptr + batch * k_batch + (head // group) * k_head
    v_base = v_ptr + batch * v_batch + (head // group) * v_head
    log2_scale = scale * 1.4426950408889634

    top = tl.full([QUERIES], -1e30, tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    out = tl.zeros([QUERIES, WIDTH], tl.float32)
    for start in range(0, end, KEYS):
        keys = start + lane
        k_at = k_base + keys[None, :] * k_row + width[:, None]
        v_at = v_base + keys[:, None] * v_row + width[None, :]
        k = tl.load(k_at, mask=keys[None, :] < end, other=0.0)
        v = tl.load(v_at, mask=keys[:, None] < end, other=0.0)
        scores = tl.dot(q, k) * log2_scale
        scores = tl.where(keys[None, :] <= rows[:, None], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(weights, axis=1)
        out = tl.dot(weights.to(tl.bfloat16), v, out * shrink[:, None])
        top = new_top

    out = out / total[:, None]
    at = (tl.program_id(1).to(tl.int64) * seq + rows[:, None]) * WIDTH + width[None, :]
    tl.store(out_ptr + at, out.to(tl.bfloat16), mask=rows[:, None] < seq)


def gqa_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    """Attention of bfloat16[batch, heads, seq, head_dim] tensors with any outer strides."""
    batch, heads, seq, head_dim = q.shape
    out = torch.empty((batch, heads, seq, head_dim), dtype=q.dtype, device=q.device)
    queries, keys = (16, 64) if seq <= 1024 else (128, 64)
    gqa_kernel[(triton.cdiv(seq, queries), batch * heads)](
        q,
        k,
        v,
        out,
        *q.stride()[:3],
        *k.stride()[:3],
        *v.stride()[:3],
        heads,
        heads // k.shape[1],
        seq,
        scale,
        WIDTH=head_dim,
        QUERIES=queries,
        KEYS=keys,
        num_warps=4,
        num_stages=1,
    )
    return out
