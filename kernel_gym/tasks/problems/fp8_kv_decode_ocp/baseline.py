"""Paged fp8 decode: one program a query head of one sequence, a page of keys at a time."""

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
    q_row,
    k_row,
    v_row,
    table_row,
    heads,
    kv_heads,
    k_factor,
    v_factor,
    WIDTH: tl.constexpr,
    PAGE: tl.constexpr,
):
    """Walks the pages of one sequence with a running softmax."""
    batch = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    kv_head = head // (heads // kv_heads)
    width = tl.arange(0, WIDTH)
    place = tl.arange(0, PAGE)
    length = tl.load(length_ptr + batch)
    q = tl.load(q_ptr + (batch * heads + head) * q_row + width).to(tl.float32) * k_factor

    top = -1e38
    total = 0.0
    out = tl.zeros([WIDTH], tl.float32)
    for start in range(0, length, PAGE):
        page = tl.load(table_ptr + batch * table_row + start // PAGE).to(tl.int64)
        inside = start + place < length
        row = (page * PAGE + place) * kv_heads + kv_head
        k = tl.load(k_ptr + row[:, None] * k_row + width[None, :], mask=inside[:, None], other=0.0)
        v = tl.load(v_ptr + row[:, None] * v_row + width[None, :], mask=inside[:, None], other=0.0)
        scores = tl.sum(k.to(tl.float32) * q[None, :], axis=1)
        scores = tl.where(inside, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=0))
        weights = tl.exp(scores - new_top)
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, axis=0)
        out = out * shrink + tl.sum(weights[:, None] * v.to(tl.float32), axis=0)
        top = new_top
    out = out * v_factor / total
    tl.store(out_ptr + (batch * heads + head) * WIDTH + width, out.to(tl.bfloat16))


def fp8_kv_decode_ocp(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    table: torch.Tensor,
    length: torch.Tensor,
    k_scale: float,
    v_scale: float,
    scale: float,
) -> torch.Tensor:
    """Attention of q, bfloat16[batch, heads, head_dim]; rows of all tensors may be padded."""
    batch, heads, width = q.shape
    out = torch.empty((batch, heads, width), dtype=q.dtype, device=q.device)
    paged_kernel[(batch, heads)](
        q,
        k_cache,
        v_cache,
        table,
        length,
        out,
        q.stride(1),
        k_cache.stride(2),
        v_cache.stride(2),
        table.stride(0),
        heads,
        k_cache.shape[2],
        scale * k_scale,
        v_scale,
        WIDTH=width,
        PAGE=16,
    )
    return out
