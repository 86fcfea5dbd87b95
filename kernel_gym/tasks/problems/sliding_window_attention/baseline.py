"""Window attention: one program a block of queries, a running softmax over the window."""

import torch
import triton
import triton.language as tl


@triton.jit
def window_kernel(
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
    seq,
    window,
    scale,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Attends BLOCK queries of one head to the blocks of keys that their windows meet."""
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    width = tl.arange(0, WIDTH)
    q = tl.load(
        q_ptr + batch * q_batch + head * q_head + rows[:, None] * q_row + width[None, :],
        mask=rows[:, None] < seq,
        other=0.0,
    )
    k_base = k_ptr + batch * k_batch + head * k_head
    v_base = v_ptr + batch * v_batch + head * v_head

    top = tl.full([BLOCK], -1e30, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    out = tl.zeros([BLOCK, WIDTH], tl.float32)
    first = tl.maximum(0, tl.program_id(0) * BLOCK - window + 1) // BLOCK * BLOCK
    for start in range(first, (tl.program_id(0) + 1) * BLOCK, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        inside = keys[:, None] < seq
        k = tl.load(k_base + keys[:, None] * k_row + width[None, :], mask=inside, other=0.0)
        v = tl.load(v_base + keys[:, None] * v_row + width[None, :], mask=inside, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        back = rows[:, None] - keys[None, :]
        visible = (back >= 0) & (back < window)
        new_top = tl.maximum(top, tl.max(tl.where(visible, scores, -1e30), axis=1))
        weights = tl.where(visible, tl.exp(scores - new_top[:, None]), 0.0)
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, axis=1)
        out = tl.dot(weights.to(tl.float16), v, out * shrink[:, None])
        top = new_top

    out = out / total[:, None]
    at = (tl.program_id(1).to(tl.int64) * seq + rows[:, None]) * WIDTH + width[None, :]
    tl.store(out_ptr + at, out.to(tl.float16), mask=rows[:, None] < seq)


def sliding_window_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, window: int, scale: float
) -> torch.Tensor:
    """Attention of q, k, v, float16[batch, heads, seq, head_dim] with any outer strides."""
    batch, heads, seq, head_dim = q.shape
    out = torch.empty((batch, heads, seq, head_dim), dtype=q.dtype, device=q.device)
    block = 32
    window_kernel[(triton.cdiv(seq, block), batch * heads)](
        q,
        k,
        v,
        out,
        *q.stride()[:3],
        *k.stride()[:3],
        *v.stride()[:3],
        heads,
        seq,
        window,
        scale,
        WIDTH=head_dim,
        BLOCK=block,
        num_warps=4,
        num_stages=1,
    )
    return out
