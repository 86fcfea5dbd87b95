"""Decode with an int8 cache: one program a query head of one sequence, 32 keys at a time."""

import torch
import triton
import triton.language as tl


@triton.jit
def decode_kernel(
    q_ptr,
    k_ptr,
    k_scale_ptr,
    v_ptr,
    v_scale_ptr,
    length_ptr,
    out_ptr,
    q_row,
    k_row,
    k_scale_row,
    v_row,
    v_scale_row,
    heads,
    kv_heads,
    keys,
    scale,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Walks the keys of one sequence with a running softmax."""
    batch = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    kv_head = head // (heads // kv_heads)
    width = tl.arange(0, WIDTH)
    length = tl.load(length_ptr + batch)
    q = tl.load(q_ptr + (batch * heads + head) * q_row + width).to(tl.float32) * scale

    top = -1e38
    total = 0.0
    out = tl.zeros([WIDTH], tl.float32)
    for start in range(0, length, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < length
        token = batch * keys + at
        row = token * kv_heads + kv_head
        k = tl.load(k_ptr + row[:, None] * k_row + width[None, :], mask=inside[:, None], other=0)
        v = tl.load(v_ptr + row[:, None] * v_row + width[None, :], mask=inside[:, None], other=0)
        k_scale = tl.load(k_scale_ptr + token * k_scale_row + kv_head, mask=inside, other=0.0)
        v_scale = tl.load(v_scale_ptr + token * v_scale_row + kv_head, mask=inside, other=0.0)
        scores = tl.sum(k.to(tl.float32) * q[None, :], axis=1) * k_scale
        scores = tl.where(inside, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=0))
        weights = tl.exp(scores - new_top)
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, axis=0)
        out = out * shrink + tl.sum((weights * v_scale)[:, None] * v.to(tl.float32), axis=0)
        top = new_top
    tl.store(out_ptr + (batch * heads + head) * WIDTH + width, (out / total).to(tl.float16))


def int8_kv_decode(
    q: torch.Tensor,
    k_code: torch.Tensor,
    k_scale: torch.Tensor,
    v_code: torch.Tensor,
    v_scale: torch.Tensor,
    length: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Attention of q, float16[batch, heads, head_dim]; rows of all tensors may be padded."""
    batch, heads, width = q.shape
    out = torch.empty((batch, heads, width), dtype=q.dtype, device=q.device)
    decode_kernel[(batch, heads)](
        q,
        k_code,
        k_scale,
        v_code,
        v_scale,
        length,
        out,
        q.stride(1),
        k_code.stride(2),
        k_scale.stride(1),
        v_code.stride(2),
        v_scale.stride(1),
        heads,
        k_code.shape[2],
        k_code.shape[1],
        scale,
        WIDTH=width,
        BLOCK=32,
    )
    return out
