"""Pairwise distances: one program computes a strip of the distances of one point."""

import torch
import triton
import triton.language as tl


@triton.jit
def pairwise_distance_kernel(
    p_ptr,
    q_ptr,
    out_ptr,
    p_batch,
    p_point,
    q_batch,
    q_point,
    n,
    m,
    dim,
    BLOCK: tl.constexpr,
):
    """Distances of point i of p to BLOCK points of q."""
    i = tl.program_id(0).to(tl.int64)
    batch = tl.program_id(1).to(tl.int64)
    j = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    p_base = p_ptr + batch * p_batch + i * p_point
    q_base = q_ptr + batch * q_batch + j.to(tl.int64) * q_point
    total = tl.zeros([BLOCK], tl.float32)
    for d in range(dim):
        difference = tl.load(p_base + d) - tl.load(q_base + d, mask=j < m, other=0.0)
        total += difference * difference
    tl.store(out_ptr + (batch * n + i) * m + j, tl.sqrt(total), mask=j < m)


def pairwise_distance(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Distances of p, float32[batch, n, dim], to q, float32[batch, m, dim]."""
    batch, n, dim = p.shape
    m = q.shape[1]
    out = torch.empty((batch, n, m), dtype=p.dtype, device=p.device)
    block = 128
    pairwise_distance_kernel[(n, batch, triton.cdiv(m, block))](
        p,
        q,
        out,
        p.stride(0),
        p.stride(1),
        q.stride(0),
        q.stride(1),
        n,
        m,
        dim,
        BLOCK=block,
    )
    return out
