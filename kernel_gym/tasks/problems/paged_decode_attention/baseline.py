"""Paged decode: one program a query head of one sequence, a page of keys at a time."""

import torch
import triton
import triton.language as tl


@triton.jit
def paged_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    length_ptr,
    out_ptr,
    q_batch,
    q_head,
    k_page,
    k_row,
    k_head,
    v_page,
    v_row,
    v_head,
    table_row,
    heads,
    group,
    scale,
    WIDTH: tl.constexpr,
    PAGE: tl.constexpr,
):
    """Walks the pages of one sequence with a running softmax."""
    batch = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    width = tl.arange(0, WIDTH)
    place = tl.arange(0, PAGE)
    length = tl.load(length_ptr + batch)
    q = tl.load(q_ptr + batch * q_batch + head * q_head + width).to(tl.float32) * scale

    top = float("-inf")
    total = 0.0
    out = tl.zeros([WIDTH], tl.float32)
    for start in range(0, length, PAGE):
        page = tl.load(table_ptr + batch * table_row + start // PAGE).to(tl.int64)
        inside = start + place < length
        k_at = page * k_page + place[:, None] * k_row + (head // group) * k_head + width[None, :]
        v_at = page * v_page + place[:, None] * v_row + (head // group) * v_head + width[None, :]
        k = tl.load(k_ptr + k_at, mask=inside[:, None], other=0.0).to(tl.float32)
        v = tl.load(v_ptr + v_at, mask=inside[:, None], other=0.0).to(tl.float32)
        scores = tl.where(inside, tl.sum(k * q[None, :], axis=1), float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=0))
        weights = tl.exp(scores - new_top)
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, axis=0)
        out = out * shrink + tl.sum(weights[:, None] * v, axis=0)
        top = new_top
    tl.store(out_ptr + (batch * heads + head) * WIDTH + width, (out / total).to(tl.float16))


def paged_decode_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    table: torch.Tensor,
    length: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Attention of q, float16[batch, heads, head_dim], to paged caches with any outer strides."""
    batch, heads, head_dim = q.shape
    out = torch.empty((batch, heads, head_dim), dtype=q.dtype, device=q.device)
    paged_kernel[(batch, heads)](
        q,
        k_cache,
        v_cache,
        table,
        length,
        out,
        *q.stride()[:2],
        *k_cache.stride()[:3],
        *v_cache.stride()[:3],
        table.stride(0),
        heads,
        heads // k_cache.shape[2],
        scale,
        WIDTH=head_dim,
        PAGE=16,
        num_warps=1,
    )
    return out
