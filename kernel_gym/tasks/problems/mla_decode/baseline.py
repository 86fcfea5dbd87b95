"""Latent attention: one program 16 heads of one sequence, 16 keys at a time."""

import torch
import triton
import triton.language as tl


@triton.jit
def mla_kernel(
    q_ptr,
    kv_ptr,
    length_ptr,
    out_ptr,
    q_batch,
    q_head,
    kv_batch,
    kv_row,
    heads,
    scale,
    LATENT: tl.constexpr,
    ROPE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Walks the keys with a running softmax; the latent part of a key is its value too."""
    batch = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    latent = tl.arange(0, LATENT)
    rope = LATENT + tl.arange(0, ROPE)
    length = tl.load(length_ptr + batch)
    q_at = q_ptr + batch * q_batch + rows[:, None] * q_head
    q_latent = tl.load(q_at + latent[None, :], mask=rows[:, None] < heads, other=0.0)
    q_rope = tl.load(q_at + rope[None, :], mask=rows[:, None] < heads, other=0.0)

    top = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    out = tl.zeros([BLOCK, LATENT], tl.float32)
    for start in range(0, length, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        inside = keys < length
        at = kv_ptr + batch * kv_batch + keys[:, None] * kv_row
        k_latent = tl.load(at + latent[None, :], mask=inside[:, None], other=0.0)
        k_rope = tl.load(at + rope[None, :], mask=inside[:, None], other=0.0)
        scores = tl.dot(q_latent, tl.trans(k_latent))
        scores = tl.dot(q_rope, tl.trans(k_rope), scores) * scale
        scores = tl.where(inside[None, :], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, axis=1)
        out = tl.dot(weights.to(tl.float16), k_latent, out * shrink[:, None])
        top = new_top

    at = (batch * heads + rows[:, None]) * LATENT + latent[None, :]
    tl.store(out_ptr + at, (out / total[:, None]).to(tl.float16), mask=rows[:, None] < heads)


def mla_decode(
    q: torch.Tensor, kv: torch.Tensor, length: torch.Tensor, scale: float
) -> torch.Tensor:
    """Attention of q, float16[batch, heads, 576], to kv, float16[batch, context, 576]."""
    batch, heads, _ = q.shape
    out = torch.empty((batch, heads, 512), dtype=q.dtype, device=q.device)
    block = 16
    mla_kernel[(batch, triton.cdiv(heads, block))](
        q,
        kv,
        length,
        out,
        *q.stride()[:2],
        *kv.stride()[:2],
        heads,
        scale,
        LATENT=512,
        ROPE=64,
        BLOCK=block,
        num_warps=4,
        num_stages=1,
    )
    return out
