"""Triangle multiplication: one program some j and channels of one i, a loop over k."""

import torch
import triton
import triton.language as tl


@triton.jit
def triangle_kernel(
    a_ptr,
    b_ptr,
    gate_ptr,
    out_ptr,
    n,
    channels,
    a_i,
    a_k,
    b_j,
    b_k,
    gate_i,
    gate_j,
    EDGES: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Multiplies and adds elementwise, EDGES x CHANNELS at a time."""
    i = tl.program_id(0).to(tl.int64)
    j = tl.program_id(1) * EDGES + tl.arange(0, EDGES)[:, None]
    channel = tl.program_id(2) * CHANNELS + tl.arange(0, CHANNELS)
    at = channel[None, :]
    inside = (j < n) & (at < channels)
    total = tl.zeros([EDGES, CHANNELS], tl.float32)
    for k in range(0, n):
        a = tl.load(a_ptr + i * a_i + k * a_k + channel, mask=channel < channels, other=0.0)
        b = tl.load(b_ptr + j * b_j + k * b_k + at, mask=inside, other=0.0)
        total += a.to(tl.float32)[None, :] * b.to(tl.float32)
    gate = tl.load(gate_ptr + i * gate_i + j * gate_j + at, mask=inside, other=0.0)
    out = total / (1.0 + tl.exp(-gate.to(tl.float32)))
    tl.store(out_ptr + (i * n + j) * channels + at, out.to(tl.bfloat16), mask=inside)


def triangle_multiplication(a: torch.Tensor, b: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """Update of bfloat16[residues, residues, channels] pairs with any outer strides."""
    n, _, channels = a.shape
    out = torch.empty((n, n, channels), dtype=a.dtype, device=a.device)
    edges, width = 8, 32
    triangle_kernel[(n, triton.cdiv(n, edges), triton.cdiv(channels, width))](
        a,
        b,
        gate,
        out,
        n,
        channels,
        *a.stride()[:2],
        *b.stride()[:2],
        *gate.stride()[:2],
        EDGES=edges,
        CHANNELS=width,
        num_warps=2,
    )
    return out
