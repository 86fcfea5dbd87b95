"""Paged latent attention: one program 16 heads of one sequence, a page of latents at a time."""

import torch
import triton
import triton.language as tl


@triton.jit
def paged_mla_kernel(
    q_ptr,
    cache_ptr,
    table_ptr,
    length_ptr,
    out_ptr,
    q_row,
    cache_row,
    table_row,
    heads,
    scale,
    RANK: tl.constexpr,
    ROPE: tl.constexpr,
    HEADS: tl.constexpr,
    PAGE: tl.constexpr,
):
    """Walks the pages of one sequence with a running softmax."""
    batch = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    width = tl.arange(0, RANK)
    turned = tl.arange(0, ROPE)
    place = tl.arange(0, PAGE)
    known = head[:, None] < heads
    length = tl.load(length_ptr + batch)
    q_at = q_ptr + (batch * heads + head[:, None]) * q_row
    q = tl.load(q_at + width[None, :], mask=known, other=0.0)
    q_turned = tl.load(q_at + RANK + turned[None, :], mask=known, other=0.0)

    top = tl.full([HEADS], -1e38, tl.float32)
    total = tl.zeros([HEADS], tl.float32)
    out = tl.zeros([HEADS, RANK], tl.float32)
    for start in range(0, length, PAGE):
        page = tl.load(table_ptr + batch * table_row + start // PAGE).to(tl.int64)
        inside = start + place < length
        row = cache_ptr + (page * PAGE + place[:, None]) * cache_row
        c = tl.load(row + width[None, :], mask=inside[:, None], other=0.0)
        c_turned = tl.load(row + RANK + turned[None, :], mask=inside[:, None], other=0.0)
        scores = tl.dot(q_turned, tl.trans(c_turned), tl.dot(q, tl.trans(c))) * scale
        scores = tl.where(inside[None, :], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, axis=1)
        out = tl.dot(weights.to(c.dtype), c, out * shrink[:, None])
        top = new_top
    at = (batch * heads + head[:, None]) * RANK + width[None, :]
    tl.store(out_ptr + at, (out / total[:, None]).to(tl.bfloat16), mask=known)


def paged_mla_decode(
    q: torch.Tensor,
    cache: torch.Tensor,
    table: torch.Tensor,
    length: torch.Tensor,
    rank: int,
    scale: float,
) -> torch.Tensor:
    """Attention of q, bfloat16[batch, heads, rank + rope]; rows of all tensors may be padded."""
    batch, heads, width = q.shape
    out = torch.empty((batch, heads, rank), dtype=q.dtype, device=q.device)
    paged_mla_kernel[(batch, triton.cdiv(heads, 16))](
        q,
        cache,
        table,
        length,
        out,
        q.stride(1),
        cache.stride(1),
        table.stride(0),
        heads,
        scale,
        RANK=rank,
        ROPE=width - rank,
        HEADS=16,
        PAGE=16,
        num_warps=1,
    )
    return out
