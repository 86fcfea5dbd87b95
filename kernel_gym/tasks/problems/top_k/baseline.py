"""Top-k: one program a row searches it k times for the next one in order of value and index."""

import torch
import triton
import triton.language as tl


@triton.jit
def top_k_kernel(x_ptr, values_ptr, indices_ptr, x_stride, cols, k, BLOCK: tl.constexpr):
    """Finds the k largest of one row, one after the other."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    last = float("inf")
    last_at = -1
    for i in range(k):
        best = tl.full([BLOCK], float("-inf"), tl.float32)
        best_at = tl.full([BLOCK], 0, tl.int32) + cols
        for start in range(0, cols, BLOCK):
            at = start + lane
            x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=float("-inf"))
            left = (x < last) | ((x == last) & (at > last_at))
            larger = left & (at < cols) & (x > best)
            best = tl.where(larger, x, best)
            best_at = tl.where(larger, at, best_at)
        last = tl.max(best, axis=0)
        last_at = tl.min(tl.where(best == last, best_at, cols), axis=0)
        tl.store(values_ptr + row * k + i, last)
        tl.store(indices_ptr + row * k + i, last_at.to(tl.int64))


def top_k(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k largest of each row of x, float32[rows, cols] with any row stride."""
    rows, cols = x.shape
    values = torch.empty((rows, k), dtype=x.dtype, device=x.device)
    indices = torch.empty((rows, k), dtype=torch.int64, device=x.device)
    block = min(256, triton.next_power_of_2(cols))
    top_k_kernel[(rows,)](x, values, indices, x.stride(0), cols, k, BLOCK=block, num_warps=1)
    return values, indices
