"""Gated linear attention: one program some columns of one head's state, step by step."""

import torch
import triton
import triton.language as tl


@triton.jit
def gla_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    g_ptr,
    out_ptr,
    q_row,
    k_row,
    v_row,
    g_row,
    heads,
    seq,
    key,
    value,
    scale,
    KEY: tl.constexpr,
    COLS: tl.constexpr,
):
    """Keeps KEY x COLS of the state in registers."""
    batch = (tl.program_id(0) // heads).to(tl.int64)
    head = tl.program_id(0) % heads
    row = tl.arange(0, KEY)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    state = tl.zeros([KEY, COLS], tl.float32)
    for t in range(0, seq):
        at = (batch * seq + t) * heads + head
        q = tl.load(q_ptr + at * q_row + row, mask=row < key, other=0.0).to(tl.float32)
        k = tl.load(k_ptr + at * k_row + row, mask=row < key, other=0.0).to(tl.float32)
        g = tl.load(g_ptr + at * g_row + row, mask=row < key, other=0.0)
        v = tl.load(v_ptr + at * v_row + col, mask=col < value, other=0.0).to(tl.float32)
        state = state * tl.exp(g)[:, None] + k[:, None] * v[None, :]
        out = tl.sum((q * scale)[:, None] * state, axis=0)
        tl.store(out_ptr + at * value + col, out.to(tl.float16), mask=col < value)


def gla_recurrence(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, scale: float
) -> torch.Tensor:
    """Reads of q, float16[batch, seq, heads, key]; rows of all tensors may be padded."""
    batch, seq, heads, key = q.shape
    value = v.shape[3]
    out = torch.empty((batch, seq, heads, value), dtype=v.dtype, device=v.device)
    gla_kernel[(batch * heads, triton.cdiv(value, 16))](
        q,
        k,
        v,
        g,
        out,
        q.stride(2),
        k.stride(2),
        v.stride(2),
        g.stride(2),
        heads,
        seq,
        key,
        value,
        scale,
        KEY=triton.next_power_of_2(key),
        COLS=16,
        num_warps=1,
    )
    return out
