"""Histogram: one program adds a strip of one row to global counts by atomics."""

import torch
import triton
import triton.language as tl


@triton.jit
def histogram_kernel(codes_ptr, out_ptr, codes_stride, cols, strips, bins, BLOCK: tl.constexpr):
    """Counts BLOCK codes."""
    row = (tl.program_id(0) // strips).to(tl.int64)
    at = tl.program_id(0) % strips * BLOCK + tl.arange(0, BLOCK)
    codes = tl.load(codes_ptr + row * codes_stride + at, mask=at < cols, other=-1)
    counts = (codes >= 0) & (codes < bins)
    ones = tl.full([BLOCK], 1, tl.int32)
    tl.atomic_add(out_ptr + row * bins + codes, ones, mask=counts)


def histogram(codes: torch.Tensor, num_bins: int) -> torch.Tensor:
    """Counts of codes, int32[rows, cols] with any row stride, by row."""
    rows, cols = codes.shape
    out = torch.zeros((rows, num_bins), dtype=torch.int32, device=codes.device)
    block = 256
    strips = triton.cdiv(cols, block)
    histogram_kernel[(rows * strips,)](
        codes, out, codes.stride(0), cols, strips, num_bins, BLOCK=block
    )
    return out
