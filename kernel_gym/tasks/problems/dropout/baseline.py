"""Dropout: one program handles a strip of one row; each element computes its own Philox block."""

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, x_stride, cols, p, seed, offset, BLOCK: tl.constexpr):
    """Draws BLOCK random numbers and keeps or drops."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < cols
    element = row * cols + at
    counter = element // 4
    zero = counter * 0
    low = zero + offset
    w0, w1, w2, w3 = tl.philox(
        seed,
        counter.to(tl.uint32),
        (counter >> 32).to(tl.uint32),
        low.to(tl.uint32),
        (low >> 32).to(tl.uint32),
    )
    lane = element % 4
    word = tl.where(lane < 2, tl.where(lane == 0, w0, w1), tl.where(lane == 2, w2, w3))
    keep = (word >> 8).to(tl.float32) * (1.0 / 16777216.0) >= p
    x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
    out = tl.where(keep, x / (1.0 - p), 0.0)
    tl.store(out_ptr + element, out.to(tl.float16), mask=inside)


def dropout(x: torch.Tensor, p: float, seed: int, offset: int) -> torch.Tensor:
    """Drops elements of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = 256
    dropout_kernel[(rows, triton.cdiv(cols, block))](
        x, out, x.stride(0), cols, p, seed, offset, BLOCK=block
    )
    return out
