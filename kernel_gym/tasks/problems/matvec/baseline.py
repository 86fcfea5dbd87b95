"""Matrix times vector: one program a row."""

import torch
import triton
import triton.language as tl


@triton.jit
def matvec_kernel(a_ptr, x_ptr, out_ptr, a_row, cols, BLOCK: tl.constexpr):
    """Sums one row in blocks."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        a = tl.load(a_ptr + row * a_row + at, mask=at < cols, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        total += a * x
    tl.store(out_ptr + row, tl.sum(total, axis=0).to(tl.float16))


def matvec(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Product of a, float16[rows, cols] with any row stride, and x, float16[cols]."""
    rows, cols = a.shape
    out = torch.empty((rows,), dtype=a.dtype, device=a.device)
    matvec_kernel[(rows,)](a, x, out, a.stride(0), cols, BLOCK=256)
    return out
