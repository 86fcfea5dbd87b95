"""Attention gradients: a kernel for delta, one for dk and dv by keys, one for dq by queries."""

import torch
import triton
import triton.language as tl


@triton.jit
def delta_kernel(
    out_ptr, dout_ptr, delta_ptr, out_row, dout_row, rows, ROWS: tl.constexpr, WIDTH: tl.constexpr
):
    """Adds up dout * out for ROWS rows of all heads."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, WIDTH)[None, :]
    inside = row[:, None] < rows
    out = tl.load(out_ptr + row[:, None] * out_row + lane, mask=inside, other=0.0).to(tl.float32)
    dout = tl.load(dout_ptr + row[:, None] * dout_row + lane, mask=inside, other=0.0)
    tl.store(delta_ptr + row, tl.sum(out * dout.to(tl.float32), axis=1), mask=row < rows)


@triton.jit
def key_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    dout_ptr,
    lse_ptr,
    delta_ptr,
    dk_ptr,
    dv_ptr,
    q_row,
    k_row,
    v_row,
    dout_row,
    lse_row,
    seq,
    scale,
    causal,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Computes the gradients of BLOCK keys and values of one head."""
    head = tl.program_id(1).to(tl.int64)
    key = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.arange(0, WIDTH)
    here = key[:, None] < seq
    k = tl.load(k_ptr + (head * seq + key[:, None]) * k_row + lane[None, :], mask=here, other=0.0)
    v = tl.load(v_ptr + (head * seq + key[:, None]) * v_row + lane[None, :], mask=here, other=0.0)
    dk = tl.zeros([BLOCK, WIDTH], tl.float32)
    dv = tl.zeros([BLOCK, WIDTH], tl.float32)
    for start in range(0, seq, BLOCK):
        row = start + tl.arange(0, BLOCK)
        known = row[:, None] < seq
        at = head * seq + row[:, None]
        q = tl.load(q_ptr + at * q_row + lane[None, :], mask=known, other=0.0)
        dout = tl.load(dout_ptr + at * dout_row + lane[None, :], mask=known, other=0.0)
        lse = tl.load(lse_ptr + head * lse_row + row, mask=row < seq, other=0.0)
        delta = tl.load(delta_ptr + head * seq + row, mask=row < seq, other=0.0)
        seen = known & here.trans() & ((key[None, :] <= row[:, None]) | (causal == 0))
        scores = tl.where(seen, tl.dot(q, tl.trans(k)) * scale - lse[:, None], float("-inf"))
        p = tl.exp(scores)
        dv = tl.dot(tl.trans(p.to(tl.float16)), dout, dv)
        ds = p * (tl.dot(dout, tl.trans(v)) - delta[:, None]) * scale
        dk = tl.dot(tl.trans(ds.to(tl.float16)), q, dk)
    out = (head * seq + key[:, None]) * WIDTH + lane[None, :]
    tl.store(dk_ptr + out, dk.to(tl.float16), mask=here)
    tl.store(dv_ptr + out, dv.to(tl.float16), mask=here)


@triton.jit
def query_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    dout_ptr,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    q_row,
    k_row,
    v_row,
    dout_row,
    lse_row,
    seq,
    scale,
    causal,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Computes the gradients of BLOCK queries of one head."""
    head = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.arange(0, WIDTH)
    known = row[:, None] < seq
    at = head * seq + row[:, None]
    q = tl.load(q_ptr + at * q_row + lane[None, :], mask=known, other=0.0)
    dout = tl.load(dout_ptr + at * dout_row + lane[None, :], mask=known, other=0.0)
    lse = tl.load(lse_ptr + head * lse_row + row, mask=row < seq, other=0.0)
    delta = tl.load(delta_ptr + head * seq + row, mask=row < seq, other=0.0)
    dq = tl.zeros([BLOCK, WIDTH], tl.float32)
    for start in range(0, seq, BLOCK):
        key = start + tl.arange(0, BLOCK)
        here = key[:, None] < seq
        place = head * seq + key[:, None]
        k = tl.load(k_ptr + place * k_row + lane[None, :], mask=here, other=0.0)
        v = tl.load(v_ptr + place * v_row + lane[None, :], mask=here, other=0.0)
        seen = known & (key[None, :] < seq) & ((key[None, :] <= row[:, None]) | (causal == 0))
        scores = tl.where(seen, tl.dot(q, tl.trans(k)) * scale - lse[:, None], float("-inf"))
        ds = tl.exp(scores) * (tl.dot(dout, tl.trans(v)) - delta[:, None]) * scale
        dq = tl.dot(ds.to(tl.float16), k, dq)
    tl.store(dq_ptr + at * WIDTH + lane[None, :], dq.to(tl.float16), mask=known)


def attention_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    dout: torch.Tensor,
    lse: torch.Tensor,
    scale: float,
    causal: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of float16[batch, heads, seq, head_dim] tensors whose rows may be padded."""
    batch, heads, seq, width = q.shape
    rows = batch * heads * seq
    dq, dk, dv = (
        torch.empty((batch, heads, seq, width), dtype=q.dtype, device=q.device) for _ in range(3)
    )
    delta = torch.empty((rows,), dtype=torch.float32, device=q.device)
    delta_kernel[(triton.cdiv(rows, 32),)](
        out, dout, delta, out.stride(2), dout.stride(2), rows, ROWS=32, WIDTH=width
    )
    grid = (triton.cdiv(seq, 32), batch * heads)
    sizes = (q.stride(2), k.stride(2), v.stride(2), dout.stride(2), lse.stride(1), seq)
    key_kernel[grid](
        q, k, v, dout, lse, delta, dk, dv, *sizes, scale, causal, WIDTH=width, BLOCK=32
    )
    query_kernel[grid](q, k, v, dout, lse, delta, dq, *sizes, scale, causal, WIDTH=width, BLOCK=32)
    return dq, dk, dv
