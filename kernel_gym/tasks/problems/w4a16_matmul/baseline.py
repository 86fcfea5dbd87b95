"""W4A16 product: one program a tile of the output, weights unpacked on the way to the product."""

import torch
import triton
import triton.language as tl


@triton.jit
def w4a16_matmul_kernel(
    x_ptr,
    qweight_ptr,
    scales_ptr,
    qzeros_ptr,
    out_ptr,
    m,
    n,
    k,
    x_row,
    qweight_row,
    scales_row,
    qzeros_row,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Computes one TILE_M x TILE_N tile; DEPTH divides the 128 rows that share a scale."""
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    cols = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    inside = cols < n
    total = tl.zeros([TILE_M, TILE_N], tl.float32)
    for start in range(0, k, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        x = tl.load(
            x_ptr + rows[:, None].to(tl.int64) * x_row + depth[None, :],
            mask=rows[:, None] < m,
            other=0.0,
        )
        words = tl.load(
            qweight_ptr + (depth[:, None] // 8).to(tl.int64) * qweight_row + cols[None, :],
            mask=inside[None, :],
            other=0,
        )
        codes = (words >> ((depth[:, None] % 8) * 4)) & 15
        group = start // 128
        zero_words = tl.load(qzeros_ptr + group * qzeros_row + cols // 8, mask=inside, other=0)
        zeros = ((zero_words >> ((cols % 8) * 4)) & 15) + 1
        scales = tl.load(scales_ptr + group * scales_row + cols, mask=inside, other=0.0)
        w = (codes - zeros[None, :]).to(tl.float16) * scales[None, :]
        total = tl.dot(x, w, total)
    tl.store(
        out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :],
        total.to(tl.float16),
        mask=(rows[:, None] < m) & inside[None, :],
    )


def w4a16_matmul(
    x: torch.Tensor, qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor
) -> torch.Tensor:
    """Product of x, float16[m, k], and the 4-bit weight, int32[k / 8, n], any row strides."""
    m, k = x.shape
    n = qweight.shape[1]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(m, 16), triton.cdiv(n, 64))
    w4a16_matmul_kernel[grid](
        x,
        qweight,
        scales,
        qzeros,
        out,
        m,
        n,
        k,
        x.stride(0),
        qweight.stride(0),
        scales.stride(0),
        qzeros.stride(0),
        TILE_M=16,
        TILE_N=64,
        DEPTH=64,
        num_warps=4,
        num_stages=1,
    )
    return out
