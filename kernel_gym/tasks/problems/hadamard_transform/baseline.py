"""Hadamard transform: one program a row; a step joins sums and differences of its halves."""

import torch
import triton
import triton.language as tl


@triton.jit
def hadamard_kernel(x_ptr, out_ptr, x_row, scale, COLS: tl.constexpr, BITS: tl.constexpr):
    """Transforms one row in registers."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, COLS)
    y = tl.load(x_ptr + row * x_row + at).to(tl.float32)
    for bit in tl.static_range(BITS):
        pairs = tl.reshape(y, (COLS >> (bit + 1), 2, 1 << bit))
        low, high = tl.split(tl.permute(pairs, (0, 2, 1)))
        y = tl.reshape(tl.permute(tl.join(low + high, low - high), (0, 2, 1)), (COLS,))
    tl.store(out_ptr + row * COLS + at, (y * scale).to(tl.float16))


def hadamard_transform(x: torch.Tensor, scale: float) -> torch.Tensor:
    """Transform of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    warps = max(1, min(8, cols // 256))
    hadamard_kernel[(rows,)](
        x, out, x.stride(0), scale, COLS=cols, BITS=cols.bit_length() - 1, num_warps=warps
    )
    return out
