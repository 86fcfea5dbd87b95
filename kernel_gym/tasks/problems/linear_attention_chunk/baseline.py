"""Linear attention: one program some columns of one head's state, a token after the other."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    decay_ptr,
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
    width,
    WIDTH: tl.constexpr,
    COLS: tl.constexpr,
):
    """Keeps WIDTH x COLS of the state in registers."""
    batch = (tl.program_id(0) // heads).to(tl.int64)
    head = (tl.program_id(0) % heads).to(tl.int64)
    row = tl.arange(0, WIDTH)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    q_base = q_ptr + batch * q_batch + head * q_head + row
    k_base = k_ptr + batch * k_batch + head * k_head + row
    v_base = v_ptr + batch * v_batch + head * v_head + col
    decay = tl.load(decay_ptr + head)
    out_base = out_ptr + tl.program_id(0).to(tl.int64) * seq * width + col
    state = tl.zeros([WIDTH, COLS], tl.float32)
    for t in range(0, seq):
        q = tl.load(q_base + t * q_row, mask=row < width, other=0.0).to(tl.float32)
        k = tl.load(k_base + t * k_row, mask=row < width, other=0.0).to(tl.float32)
        v = tl.load(v_base + t * v_row, mask=col < width, other=0.0).to(tl.float32)
        state = state * decay + k[:, None] * v[None, :]
        out = tl.sum(q[:, None] * state, axis=0)
        tl.store(out_base + t * width, out.to(tl.float16), mask=col < width)


def linear_attention_chunk(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decay: torch.Tensor
) -> torch.Tensor:
    """Linear attention of float16[batch, heads, seq, head_dim] tensors with any outer strides."""
    batch, heads, seq, width = q.shape
    out = torch.empty((batch, heads, seq, width), dtype=q.dtype, device=q.device)
    cols = 16
    linear_attention_kernel[(batch * heads, triton.cdiv(width, cols))](
        q,
        k,
        v,
        decay,
        out,
        *q.stride()[:3],
        *k.stride()[:3],
        *v.stride()[:3],
        heads,
        seq,
        width,
        WIDTH=triton.next_power_of_2(width),
        COLS=cols,
        num_warps=1,
    )
    return out
