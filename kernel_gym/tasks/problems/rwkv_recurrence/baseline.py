"""RWKV-6 time mixing: one program some columns of one head's state, a token after the other."""

import torch
import triton
import triton.language as tl


@triton.jit
def rwkv_kernel(
    r_ptr,
    k_ptr,
    v_ptr,
    w_ptr,
    u_ptr,
    out_ptr,
    r_batch,
    r_row,
    r_head,
    k_batch,
    k_row,
    k_head,
    v_batch,
    v_row,
    v_head,
    w_batch,
    w_row,
    w_head,
    u_head,
    heads,
    seq,
    WIDTH: tl.constexpr,
    COLS: tl.constexpr,
):
    """Keeps WIDTH x COLS of the state in registers."""
    batch = (tl.program_id(0) // heads).to(tl.int64)
    head = (tl.program_id(0) % heads).to(tl.int64)
    row = tl.arange(0, WIDTH)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    r_base = r_ptr + batch * r_batch + head * r_head + row
    k_base = k_ptr + batch * k_batch + head * k_head + row
    v_base = v_ptr + batch * v_batch + head * v_head + col
    w_base = w_ptr + batch * w_batch + head * w_head + row
    u = tl.load(u_ptr + head * u_head + row)
    state = tl.zeros([WIDTH, COLS], tl.float32)
    for t in range(0, seq):
        r = tl.load(r_base + t * r_row).to(tl.float32)
        k = tl.load(k_base + t * k_row).to(tl.float32)
        v = tl.load(v_base + t * v_row).to(tl.float32)
        w = tl.load(w_base + t * w_row)
        pair = k[:, None] * v[None, :]
        out = tl.sum(r[:, None] * (state + u[:, None] * pair), axis=0)
        state = w[:, None] * state + pair
        at = ((batch * seq + t) * heads + head) * WIDTH + col
        tl.store(out_ptr + at, out.to(tl.float16))


def rwkv_recurrence(
    r: torch.Tensor, k: torch.Tensor, v: torch.Tensor, w: torch.Tensor, u: torch.Tensor
) -> torch.Tensor:
    """Outputs for float16[batch, seq, heads, 64] rows with any outer strides."""
    batch, seq, heads, width = r.shape
    out = torch.empty((batch, seq, heads, width), dtype=r.dtype, device=r.device)
    cols = 16
    rwkv_kernel[(batch * heads, width // cols)](
        r,
        k,
        v,
        w,
        u,
        out,
        *r.stride()[:3],
        *k.stride()[:3],
        *v.stride()[:3],
        *w.stride()[:3],
        u.stride(0),
        heads,
        seq,
        WIDTH=width,
        COLS=cols,
        num_warps=1,
    )
    return out
