"""Packed attention: a grid of blocks for every sequence; those past its end return."""

import torch
import triton
import triton.language as tl


@triton.jit
def varlen_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    starts_ptr,
    out_ptr,
    q_row,
    q_head,
    k_row,
    k_head,
    v_row,
    v_head,
    heads,
    scale,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Attends BLOCK queries of one head of one sequence."""
    sequence = tl.program_id(1)
    head = tl.program_id(2)
    first = tl.load(starts_ptr + sequence)
    end = tl.load(starts_ptr + sequence + 1)
    block = first + tl.program_id(0) * BLOCK
    if block >= end:
        return
    rows = block + tl.arange(0, BLOCK)
    width = tl.arange(0, WIDTH)
    q = tl.load(
        q_ptr + rows[:, None].to(tl.int64) * q_row + head * q_head + width[None, :],
        mask=rows[:, None] < end,
        other=0.0,
    )
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    out = tl.zeros([BLOCK, WIDTH], tl.float32)
    for start in range(first, block + BLOCK, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        inside = keys[:, None] < end
        at = keys[:, None].to(tl.int64)
        k = tl.load(k_ptr + at * k_row + head * k_head + width[None, :], mask=inside, other=0.0)
        v = tl.load(v_ptr + at * v_row + head * v_head + width[None, :], mask=inside, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(keys[None, :] <= rows[:, None], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, axis=1)
        out = tl.dot(weights.to(tl.float16), v, out * shrink[:, None])
        top = new_top

    out = out / total[:, None]
    at = (rows[:, None].to(tl.int64) * heads + head) * WIDTH + width[None, :]
    tl.store(out_ptr + at, out.to(tl.float16), mask=rows[:, None] < end)


def varlen_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, starts: torch.Tensor, scale: float
) -> torch.Tensor:
    """Attention of q, k, v, float16[tokens, heads, head_dim] with any outer strides."""
    tokens, heads, head_dim = q.shape
    out = torch.empty((tokens, heads, head_dim), dtype=q.dtype, device=q.device)
    block = 32
    varlen_kernel[(triton.cdiv(tokens, block), starts.shape[0] - 1, heads)](
        q,
        k,
        v,
        starts,
        out,
        *q.stride()[:2],
        *k.stride()[:2],
        *v.stride()[:2],
        heads,
        scale,
        WIDTH=head_dim,
        BLOCK=block,
        num_warps=4,
        num_stages=1,
    )
    return out
