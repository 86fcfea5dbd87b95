"""Mamba-2 scan: one program some channels of one head's state, step by step."""

import torch
import triton
import triton.language as tl


@triton.jit
def ssd_kernel(
    x_ptr,
    dt_ptr,
    a_ptr,
    b_ptr,
    c_ptr,
    d_ptr,
    out_ptr,
    x_row,
    dt_row,
    b_row,
    c_row,
    seq,
    heads,
    groups,
    width,
    states,
    ROWS: tl.constexpr,
    STATES: tl.constexpr,
):
    """Keeps ROWS x STATES of the state in registers."""
    batch = (tl.program_id(0) // heads).to(tl.int64)
    head = tl.program_id(0) % heads
    group = head // (heads // groups)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, STATES)
    a = tl.load(a_ptr + head)
    d = tl.load(d_ptr + head)
    state = tl.zeros([ROWS, STATES], tl.float32)
    for t in range(0, seq):
        step = batch * seq + t
        dt = tl.load(dt_ptr + step * dt_row + head)
        x_at = x_ptr + (step * heads + head) * x_row + row
        x = tl.load(x_at, mask=row < width, other=0.0).to(tl.float32)
        b_at = b_ptr + (step * groups + group) * b_row + col
        b = tl.load(b_at, mask=col < states, other=0.0).to(tl.float32)
        c_at = c_ptr + (step * groups + group) * c_row + col
        c = tl.load(c_at, mask=col < states, other=0.0).to(tl.float32)
        state = state * tl.exp(dt * a) + (dt * x)[:, None] * b[None, :]
        out = tl.sum(state * c[None, :], axis=1) + d * x
        at = (step * heads + head) * width + row
        tl.store(out_ptr + at, out.to(tl.float16), mask=row < width)


def mamba2_ssd(
    x: torch.Tensor,
    dt: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    d: torch.Tensor,
) -> torch.Tensor:
    """Scan of x, float16[batch, seq, heads, width]; rows of all tensors may be padded."""
    batch, seq, heads, width = x.shape
    groups, states = b.shape[2:]
    out = torch.empty((batch, seq, heads, width), dtype=x.dtype, device=x.device)
    ssd_kernel[(batch * heads, triton.cdiv(width, 16))](
        x,
        dt,
        a,
        b,
        c,
        d,
        out,
        x.stride(2),
        dt.stride(1),
        b.stride(2),
        c.stride(2),
        seq,
        heads,
        groups,
        width,
        states,
        ROWS=16,
        STATES=triton.next_power_of_2(states),
        num_warps=1,
    )
    return out
