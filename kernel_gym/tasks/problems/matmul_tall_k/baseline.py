"""Product with a long sum: one program a tile of the output and SPAN of k, then a sum of parts."""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    a_ptr, b_ptr, part_ptr, m, n, k, a_row, b_row, TILE: tl.constexpr, SPAN: tl.constexpr
):
    """Computes one TILE x TILE tile of the part of the sum that one slice of k gives."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    slice_at = tl.program_id(2)
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(slice_at * SPAN, tl.minimum(k, (slice_at + 1) * SPAN), 64):
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
        total = tl.dot(a, b, total)
    part = part_ptr + slice_at.to(tl.int64) * m * n
    inside = (rows[:, None] < m) & (cols[None, :] < n)
    tl.store(part + rows[:, None] * n + cols[None, :], total, mask=inside)


@triton.jit
def sum_kernel(part_ptr, out_ptr, count, slices, BLOCK: tl.constexpr):
    """Adds up the parts of BLOCK outputs."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(0, slices):
        total += tl.load(part_ptr + i.to(tl.int64) * count + at, mask=at < count, other=0.0)
    tl.store(out_ptr + at, total.to(tl.float16), mask=at < count)


def matmul_tall_k(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Product of a, float16[m, k], and b, float16[k, n], with any row strides."""
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tile, span = 16, 1024
    slices = triton.cdiv(k, span)
    part = torch.empty((slices, m, n), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(m, tile), triton.cdiv(n, tile), slices)
    part_kernel[grid](
        a, b, part, m, n, k, a.stride(0), b.stride(0), TILE=tile, SPAN=span, num_warps=1
    )
    sum_kernel[(triton.cdiv(m * n, 128),)](part, out, m * n, slices, BLOCK=128, num_warps=1)
    return out
