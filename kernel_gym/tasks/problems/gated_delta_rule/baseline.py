"""Gated delta rule: one program some columns of one head's state, a token after the other."""

import torch
import triton
import triton.language as tl


@triton.jit
def delta_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    g_ptr,
    beta_ptr,
    out_ptr,
    q_batch,
    q_row,
    q_head,
    k_batch,
    k_row,
    k_head,
    v_batch,
    v_row,
    v_head,
    g_batch,
    g_row,
    beta_batch,
    beta_row,
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
    state = tl.zeros([WIDTH, COLS], tl.float32)
    for t in range(0, seq):
        q = tl.load(q_base + t * q_row, mask=row < width, other=0.0).to(tl.float32)
        k = tl.load(k_base + t * k_row, mask=row < width, other=0.0).to(tl.float32)
        v = tl.load(v_base + t * v_row, mask=col < width, other=0.0).to(tl.float32)
        decay = tl.exp(tl.load(g_ptr + batch * g_batch + t * g_row + head))
        beta = tl.load(beta_ptr + batch * beta_batch + t * beta_row + head)
        state *= decay
        held = tl.sum(k[:, None] * state, axis=0)
        state += k[:, None] * (beta * (v - held))[None, :]
        out = tl.sum(q[:, None] * state, axis=0)
        at = ((batch * seq + t) * heads + head) * width + col
        tl.store(out_ptr + at, out.to(tl.float16), mask=col < width)


def gated_delta_rule(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, beta: torch.Tensor
) -> torch.Tensor:
    """Reads of float16[batch, seq, heads, head_dim] queries; any outer strides."""
    batch, seq, heads, width = q.shape
    out = torch.empty((batch, seq, heads, width), dtype=q.dtype, device=q.device)
    cols = 16
    delta_kernel[(batch * heads, triton.cdiv(width, cols))](
        q,
        k,
        v,
        g,
        beta,
        out,
        *q.stride()[:3],
        *k.stride()[:3],
        *v.stride()[:3],
        *g.stride()[:2],
        *beta.stride()[:2],
        heads,
        seq,
        width,
        WIDTH=triton.next_power_of_2(width),
        COLS=cols,
        num_warps=1,
    )
    return out
