"""Sampled product: one program a row walks its edges."""

import torch
import triton
import triton.language as tl


@triton.jit
def sddmm_kernel(
    q_ptr,
    k_ptr,
    start_ptr,
    column_ptr,
    out_ptr,
    q_row,
    k_row,
    width,
    scale,
    EDGES: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Scores the edges of one row, EDGES at a time."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, WIDTH)
    q = tl.load(q_ptr + row * q_row + at, mask=at < width, other=0.0).to(tl.float32) * scale
    last = tl.load(start_ptr + row + 1)
    for first in range(tl.load(start_ptr + row), last, EDGES):
        edge = first + tl.arange(0, EDGES)
        column = tl.load(column_ptr + edge, mask=edge < last, other=0).to(tl.int64)
        inside = (edge[:, None] < last) & (at[None, :] < width)
        k = tl.load(k_ptr + column[:, None] * k_row + at[None, :], mask=inside, other=0.0)
        tl.store(out_ptr + edge, tl.sum(k.to(tl.float32) * q[None, :], axis=1), mask=edge < last)


def sddmm_csr(
    q: torch.Tensor, k: torch.Tensor, start: torch.Tensor, column: torch.Tensor, scale: float
) -> torch.Tensor:
    """Scores of q and k, float16 matrices with any row stride."""
    rows, width = q.shape
    out = torch.empty((column.shape[0],), dtype=torch.float32, device=q.device)
    sddmm_kernel[(rows,)](
        q,
        k,
        start,
        column,
        out,
        q.stride(0),
        k.stride(0),
        width,
        scale,
        EDGES=8,
        WIDTH=triton.next_power_of_2(width),
        num_warps=1,
    )
    return out
