"""Window attention: one program 16 queries of one head of one window, all keys at once."""

import torch
import triton
import triton.language as tl


@triton.jit
def window_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    bias_ptr,
    mask_ptr,
    out_ptr,
    q_window,
    q_head,
    q_row,
    k_window,
    k_head,
    k_row,
    v_window,
    v_head,
    v_row,
    bias_head,
    bias_row,
    mask_window,
    mask_row,
    windows,
    heads,
    places,
    scale,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
):
    """Softmax over the whole row, no running sums."""
    window = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    rows = tl.program_id(2) * ROWS + tl.arange(0, ROWS)[:, None]
    keys = tl.arange(0, KEYS)
    width = tl.arange(0, WIDTH)[None, :]
    inside = (rows < places) & (keys[None, :] < places)
    q_at = q_ptr + window * q_window + head * q_head + rows * q_row + width
    k_at = k_ptr + window * k_window + head * k_head + keys[:, None] * k_row + width
    v_at = v_ptr + window * v_window + head * v_head + keys[:, None] * v_row + width
    q = tl.load(q_at, mask=rows < places, other=0.0)
    k = tl.load(k_at, mask=keys[:, None] < places, other=0.0)
    v = tl.load(v_at, mask=keys[:, None] < places, other=0.0)
    bias_at = bias_ptr + head * bias_head + rows * bias_row + keys[None, :]
    mask_at = mask_ptr + (window % windows) * mask_window + rows * mask_row + keys[None, :]
    bias = tl.load(bias_at, mask=inside, other=0.0).to(tl.float32)
    mask = tl.load(mask_at, mask=inside, other=0.0).to(tl.float32)

    scores = tl.dot(q, tl.trans(k)) * scale + bias + mask
    scores = tl.where(keys[None, :] < places, scores, float("-inf"))
    weights = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    weights = weights / tl.sum(weights, axis=1)[:, None]
    out = tl.dot(weights.to(tl.float16), v)
    at = ((window * heads + head) * places + rows) * WIDTH + width
    tl.store(out_ptr + at, out.to(tl.float16), mask=rows < places)


def window_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    bias: torch.Tensor,
    mask: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Attention of float16[windows, heads, places, 32] tensors with any outer strides."""
    count, heads, places, width = q.shape
    out = torch.empty((count, heads, places, width), dtype=q.dtype, device=q.device)
    rows = 16
    window_kernel[(count, heads, triton.cdiv(places, rows))](
        q,
        k,
        v,
        bias,
        mask,
        out,
        *q.stride()[:3],
        *k.stride()[:3],
        *v.stride()[:3],
        *bias.stride()[:2],
        *mask.stride()[:2],
        mask.shape[0],
        heads,
        places,
        scale,
        WIDTH=width,
        ROWS=rows,
        KEYS=max(16, triton.next_power_of_2(places)),
        num_warps=4,
        num_stages=1,
    )
    return out
