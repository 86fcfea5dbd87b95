"""Top-k: one program a strip of a row, in registers; then one a row over the strips' best."""

import torch
import triton
import triton.language as tl


@triton.jit
def top_k_kernel(
    x_ptr,
    place_ptr,
    values_ptr,
    indices_ptr,
    x_row,
    cols,
    k,
    PLACED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Takes the largest value that is left, k times. With PLACED, place_ptr has their indices."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x_ptr + row * x_row + at, mask=at < cols, other=float("-inf"))
    out = (row * tl.num_programs(1) + tl.program_id(1)) * k
    for i in range(k):
        best = tl.max(left, axis=0)
        first = tl.min(tl.where(left == best, at, 2147483647), axis=0)
        left = tl.where(at == first, float("-inf"), left)
        index = first.to(tl.int64)
        if PLACED:
            index = tl.load(place_ptr + row * cols + first)
        tl.store(values_ptr + out + i, best)
        tl.store(indices_ptr + out + i, index)


def top_k(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k largest of each row of x, float32[rows, cols] with any row stride."""
    rows, cols = x.shape
    block = min(8192, triton.next_power_of_2(cols))
    strips = triton.cdiv(cols, block)
    values = torch.empty((rows, strips * k), dtype=x.dtype, device=x.device)
    indices = torch.empty((rows, strips * k), dtype=torch.int64, device=x.device)
    warps = min(8, max(1, block // 512))
    top_k_kernel[(rows, strips)](
        x, x, values, indices, x.stride(0), cols, k, PLACED=False, BLOCK=block, num_warps=warps
    )
    if strips == 1:
        return values, indices
    best = torch.empty((rows, k), dtype=x.dtype, device=x.device)
    best_at = torch.empty((rows, k), dtype=torch.int64, device=x.device)
    many = strips * k
    block = triton.next_power_of_2(many)
    top_k_kernel[(rows, 1)](values, indices, best, best_at, many, many, k, PLACED=True, BLOCK=block)
    return best, best_at
