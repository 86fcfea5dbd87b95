"""Accumulates in half precision."""

import torch
import triton
import triton.language as tl


@triton.jit
def low(a_ptr, b_ptr, out_ptr, m, n, k, a_stride, b_stride, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, TILE)
    total = tl.zeros([TILE, TILE], tl.float16)
    for start in range(0, k, TILE):
        at = start + inner
        a = tl.load(
            a_ptr + rows[:, None] * a_stride + at[None, :],
            (rows[:, None] < m) & (at[None, :] < k),
            0.0,
        )
        b = tl.load(
            b_ptr + at[:, None] * b_stride + cols[None, :],
            (at[:, None] < k) & (cols[None, :] < n),
            0.0,
        )
        total += tl.dot(a, b).to(tl.float16)
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :],
        total,
        (rows[:, None] < m) & (cols[None, :] < n),
    )


def matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    low[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        a, b, out, m, n, k, a.stride(0), b.stride(0), TILE=32, num_stages=1
    )
    return out
