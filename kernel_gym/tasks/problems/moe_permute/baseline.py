"""Permutation by expert: a kernel writes zeros, another copies one choice a program."""

import torch
import triton
import triton.language as tl


@triton.jit
def zero_kernel(out_ptr, count, BLOCK: tl.constexpr):
    """Writes zeros to BLOCK elements."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.zeros([BLOCK], tl.float16), mask=at < count)


@triton.jit
def copy_kernel(x_ptr, place_ptr, out_ptr, x_row, place_row, top_k, hidden, BLOCK: tl.constexpr):
    """Copies BLOCK columns of one choice's token."""
    token = (tl.program_id(0) // top_k).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(place_ptr + token * place_row + tl.program_id(0) % top_k).to(tl.int64)
    inside = (at < hidden) & (place >= 0)
    row = tl.load(x_ptr + token * x_row + at, mask=inside)
    tl.store(out_ptr + place * hidden + at, row, mask=inside)


def moe_permute(x: torch.Tensor, place: torch.Tensor, rows: int) -> torch.Tensor:
    """Places the rows of x, float16[tokens, hidden] with any row stride."""
    tokens, hidden = x.shape
    top_k = place.shape[1]
    out = torch.empty((rows, hidden), dtype=x.dtype, device=x.device)
    zero_kernel[(triton.cdiv(rows * hidden, 1024),)](out, rows * hidden, BLOCK=1024)
    grid = (tokens * top_k, triton.cdiv(hidden, 1024))
    copy_kernel[grid](x, place, out, x.stride(0), place.stride(0), top_k, hidden, BLOCK=1024)
    return out
