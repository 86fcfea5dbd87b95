"""Block-scaled fp8 product: one program a tile; each step's product is scaled as it is added."""

import torch
import triton
import triton.language as tl


@triton.jit
def fp8_block_matmul_kernel(
    a_ptr,
    a_scale_ptr,
    b_ptr,
    b_scale_ptr,
    out_ptr,
    m,
    n,
    k,
    a_row,
    a_scale_row,
    b_row,
    b_scale_row,
    TILE: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Computes one TILE x TILE tile; DEPTH divides the 128 columns that share a scale."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, k, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_row + depth[None, :],
            mask=rows[:, None] < m,
            other=0.0,
        )
        b = tl.load(
            b_ptr + cols[None, :].to(tl.int64) * b_row + depth[:, None],
            mask=cols[None, :] < n,
            other=0.0,
        )
        a_scale = tl.load(
            a_scale_ptr + rows.to(tl.int64) * a_scale_row + start // 128, mask=rows < m, other=0.0
        )
        b_scale = tl.load(
            b_scale_ptr + (cols // 128) * b_scale_row + start // 128, mask=cols < n, other=0.0
        )
        total += tl.dot(a, b) * a_scale[:, None] * b_scale[None, :]
    tl.store(
        out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :],
        total.to(tl.bfloat16),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def fp8_block_matmul(
    a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor
) -> torch.Tensor:
    """Product of a, fp8[m, k], and the transpose of b, fp8[n, k], with any row strides."""
    m, k = a.shape
    n = b.shape[0]
    out = torch.empty((m, n), dtype=torch.bfloat16, device=a.device)
    tile = 64
    grid = (triton.cdiv(m, tile), triton.cdiv(n, tile))
    fp8_block_matmul_kernel[grid](
        a,
        a_scale,
        b,
        b_scale,
        out,
        m,
        n,
        k,
        a.stride(0),
        a_scale.stride(0),
        b.stride(0),
        b_scale.stride(0),
        TILE=tile,
        DEPTH=128,
        num_warps=4,
        num_stages=1,
    )
    return out
