"""grad^T @ x: one program a tile of the output; the tile of grad is read transposed."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_tn_kernel(
    grad_ptr,
    x_ptr,
    out_ptr,
    m,
    n,
    tokens,
    grad_row,
    x_row,
    TILE: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Computes one TILE x TILE tile; GROUP tiles of a column are neighbours."""
    group = tl.program_id(0) // (GROUP * tl.cdiv(n, TILE))
    height = tl.minimum(tl.cdiv(m, TILE) - group * GROUP, GROUP)
    place = tl.program_id(0) % (GROUP * tl.cdiv(n, TILE))
    rows = (group * GROUP + place % height) * TILE + tl.arange(0, TILE)
    cols = place // height * TILE + tl.arange(0, TILE)
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, tokens, DEPTH):
        token = (start + tl.arange(0, DEPTH)).to(tl.int64)
        grad = tl.load(
            grad_ptr + token[None, :] * grad_row + rows[:, None],
            mask=(rows[:, None] < m) & (token[None, :] < tokens),
            other=0.0,
        )
        x = tl.load(
            x_ptr + token[:, None] * x_row + cols[None, :],
            mask=(token[:, None] < tokens) & (cols[None, :] < n),
            other=0.0,
        )
        total = tl.dot(grad, x, total)
    tl.store(
        out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :],
        total.to(tl.bfloat16),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def matmul_tn(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Product of the transpose of grad, bfloat16[tokens, m], and x, bfloat16[tokens, n]."""
    tokens, m = grad.shape
    n = x.shape[1]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    tile = 64
    grid = (triton.cdiv(m, tile) * triton.cdiv(n, tile),)
    matmul_tn_kernel[grid](
        grad,
        x,
        out,
        m,
        n,
        tokens,
        grad.stride(0),
        x.stride(0),
        TILE=tile,
        DEPTH=64,
        GROUP=8,
    )
    return out
