"""Row maximum and its index: one program a row, a running best in each lane."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_argmax_kernel(x_ptr, values_ptr, indices_ptr, x_stride, cols, BLOCK: tl.constexpr):
    """Scans one row block by block."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    best_at = tl.zeros([BLOCK], tl.int32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=float("-inf"))
        larger = x > best
        best = tl.where(larger, x, best)
        best_at = tl.where(larger, at, best_at)
    top = tl.max(best, axis=0)
    where = tl.min(tl.where(best == top, best_at, cols), axis=0)
    tl.store(values_ptr + row, top)
    tl.store(indices_ptr + row, where.to(tl.int64))


def row_argmax(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Maximum and its index for each row of x, float32[rows, cols] with any row stride."""
    rows, cols = x.shape
    values = torch.empty((rows,), dtype=x.dtype, device=x.device)
    indices = torch.empty((rows,), dtype=torch.int64, device=x.device)
    row_argmax_kernel[(rows,)](x, values, indices, x.stride(0), cols, BLOCK=256)
    return values, indices
