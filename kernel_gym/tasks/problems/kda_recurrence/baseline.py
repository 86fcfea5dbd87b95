"""Kimi delta attention: one program some columns of one head's state, step by step."""

import torch
import triton
import triton.language as tl


@triton.jit
def kda_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    g_ptr,
    beta_ptr,
    out_ptr,
    q_row,
    k_row,
    v_row,
    g_row,
    beta_row,
    heads,
    seq,
    width,
    scale,
    WIDTH: tl.constexpr,
    COLS: tl.constexpr,
):
    """Keeps WIDTH x COLS of the state in registers."""
    batch = (tl.program_id(0) // heads).to(tl.int64)
    head = tl.program_id(0) % heads
    row = tl.arange(0, WIDTH)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    state = tl.zeros([WIDTH, COLS], tl.float32)
    for t in range(0, seq):
        at = (batch * seq + t) * heads + head
        q = tl.load(q_ptr + at * q_row + row, mask=row < width, other=0.0).to(tl.float32)
        k = tl.load(k_ptr + at * k_row + row, mask=row < width, other=0.0).to(tl.float32)
        g = tl.load(g_ptr + at * g_row + row, mask=row < width, other=0.0)
        v = tl.load(v_ptr + at * v_row + col, mask=col < width, other=0.0).to(tl.float32)
        beta = tl.load(beta_ptr + (batch * seq + t) * beta_row + head)
        state = state * tl.exp(g)[:, None]
        held = tl.sum(k[:, None] * state, axis=0)
        state += k[:, None] * (beta * (v - held))[None, :]
        out = tl.sum((q * scale)[:, None] * state, axis=0)
        tl.store(out_ptr + at * width + col, out.to(tl.float16), mask=col < width)


def kda_recurrence(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Reads of q, float16[batch, seq, heads, head_dim]; rows of all tensors may be padded."""
    batch, seq, heads, width = q.shape
    out = torch.empty((batch, seq, heads, width), dtype=v.dtype, device=v.device)
    kda_kernel[(batch * heads, triton.cdiv(width, 16))](
        q,
        k,
        v,
        g,
        beta,
        out,
        q.stride(2),
        k.stride(2),
        v.stride(2),
        g.stride(2),
        beta.stride(1),
        heads,
        seq,
        width,
        scale,
        WIDTH=triton.next_power_of_2(width),
        COLS=16,
        num_warps=1,
    )
    return out
