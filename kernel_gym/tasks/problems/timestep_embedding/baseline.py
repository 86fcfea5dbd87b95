"""Timestep embedding: one program computes a strip of the angles of one timestep."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def timestep_embedding_kernel(t_ptr, out_ptr, half, log_period, BLOCK: tl.constexpr):
    """Writes cosine and sine of BLOCK angles."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < half
    t = tl.load(t_ptr + row)
    angle = t * tl.exp(-log_period * at.to(tl.float32) / half)
    out_row = out_ptr + row * 2 * half
    tl.store(out_row + at, tl.cos(angle).to(tl.float16), mask=inside)
    tl.store(out_row + half + at, tl.sin(angle).to(tl.float16), mask=inside)


def timestep_embedding(t: torch.Tensor, dim: int, max_period: float) -> torch.Tensor:
    """Embeds t, float32[rows], into float16[rows, dim]."""
    rows, half = t.shape[0], dim // 2
    out = torch.empty((rows, dim), dtype=torch.float16, device=t.device)
    block = 64
    timestep_embedding_kernel[(rows, triton.cdiv(half, block))](
        t, out, half, math.log(max_period), BLOCK=block, num_warps=1
    )
    return out
