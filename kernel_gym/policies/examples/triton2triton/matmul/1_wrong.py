"""Wrong: the running total is rounded to bfloat16 after each step along k."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, out_ptr, m, n, k, a_stride, b_stride, TILE: tl.constexpr):
    """Computes one TILE x TILE tile."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, TILE)
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, k, TILE):
        depth = start + inner
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_stride + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        b = tl.load(
            b_ptr + depth[:, None].to(tl.int64) * b_stride + cols[None, :],
            mask=(depth[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        total = tl.dot(a, b, total).to(tl.bfloat16).to(tl.float32)
    tl.store(
        out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :],
        total.to(tl.float16),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Product of a, float16[m, k], and b, float16[k, n], with any row strides."""
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tile = 32
    grid = (triton.cdiv(m, tile), triton.cdiv(n, tile))
    matmul_kernel[grid](
        a, b, out, m, n, k, a.stride(0), b.stride(0), TILE=tile, num_warps=4, num_stages=1
    )
    return out
