"""Product with a long sum: one program a tile of the output walks the whole of k."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_tall_k_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_row, b_row, TILE: tl.constexpr, PART: tl.constexpr
):
    """Computes one TILE x TILE tile."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros([TILE, TILE], tl.float32)
    part = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, k, 64):
        depth = start + tl.arange(0, 64)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_row + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        b = tl.load(
            b_ptr + depth[:, None].to(tl.int64) * b_row + cols[None, :],
            mask=(depth[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        part = tl.dot(a, b, part)
        if start % PART == PART - 64:  # matrix units truncate: long sums of theirs drift
            total += part
            part = tl.zeros([TILE, TILE], tl.float32)
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :],
        (total + part).to(tl.float16),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def matmul_tall_k(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Product of a, float16[m, k], and b, float16[k, n], with any row strides."""
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tile = 16
    grid = (triton.cdiv(m, tile), triton.cdiv(n, tile))
    matmul_tall_k_kernel[grid](
        a,
        b,
        out,
        m,
        n,
        k,
        a.stride(0),
        b.stride(0),
        TILE=tile,
        PART=1024,
        num_warps=2,
        num_stages=1,
    )
    return out
