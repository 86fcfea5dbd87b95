"""Selective scan: one program some channels of one sequence, a step after the other."""

import torch
import triton
import triton.language as tl


@triton.jit
def scan_kernel(
    u_ptr,
    delta_ptr,
    a_ptr,
    b_ptr,
    c_ptr,
    skip_ptr,
    bias_ptr,
    out_ptr,
    u_batch,
    u_channel,
    delta_batch,
    delta_channel,
    a_row,
    b_batch,
    b_row,
    c_batch,
    c_row,
    channels,
    seq,
    BLOCK: tl.constexpr,
    STATE: tl.constexpr,
):
    """Keeps BLOCK x STATE states in registers."""
    batch = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < channels
    at = tl.arange(0, STATE)
    a = tl.load(a_ptr + channel[:, None] * a_row + at[None, :], mask=inside[:, None], other=0.0)
    skip = tl.load(skip_ptr + channel, mask=inside, other=0.0)
    bias = tl.load(bias_ptr + channel, mask=inside, other=0.0)
    u_base = u_ptr + batch * u_batch + channel * u_channel
    delta_base = delta_ptr + batch * delta_batch + channel * delta_channel
    state = tl.zeros([BLOCK, STATE], tl.float32)
    for t in range(0, seq):
        u = tl.load(u_base + t, mask=inside, other=0.0).to(tl.float32)
        delta = tl.load(delta_base + t, mask=inside, other=0.0).to(tl.float32) + bias
        power = tl.exp(tl.minimum(delta, 20.0))
        series = power * (1.0 - power * (0.5 - power / 3.0))  # 1 + power would lose digits
        step = tl.where(power < 0.01, series, tl.log(1.0 + power))
        step = tl.where(delta > 20.0, delta, step)
        b = tl.load(b_ptr + batch * b_batch + at * b_row + t).to(tl.float32)
        c = tl.load(c_ptr + batch * c_batch + at * c_row + t).to(tl.float32)
        state = tl.exp(step[:, None] * a) * state + (step * u)[:, None] * b[None, :]
        out = tl.sum(state * c[None, :], axis=1) + skip * u
        out_at = (batch * channels + channel) * seq + t
        tl.store(out_ptr + out_at, out.to(tl.float16), mask=inside)


def selective_scan(
    u: torch.Tensor,
    delta: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    skip: torch.Tensor,
    bias: torch.Tensor,
) -> torch.Tensor:
    """Scan of u, float16[batch, channels, seq]; every matrix with any outer strides."""
    batch, channels, seq = u.shape
    out = torch.empty((batch, channels, seq), dtype=u.dtype, device=u.device)
    block = 16
    scan_kernel[(triton.cdiv(channels, block), batch)](
        u,
        delta,
        a,
        b,
        c,
        skip,
        bias,
        out,
        *u.stride()[:2],
        *delta.stride()[:2],
        a.stride(0),
        *b.stride()[:2],
        *c.stride()[:2],
        channels,
        seq,
        BLOCK=block,
        STATE=16,
        num_warps=1,
    )
    return out
