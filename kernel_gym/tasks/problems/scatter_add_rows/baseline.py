"""Scatter-add: one program adds a strip of one row by atomics into zeros."""

import torch
import triton
import triton.language as tl


@triton.jit
def scatter_add_rows_kernel(values_ptr, ids_ptr, out_ptr, values_stride, dim, BLOCK: tl.constexpr):
    """Adds BLOCK elements of one token to the row that its index names."""
    token = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(ids_ptr + token)
    values = tl.load(values_ptr + token * values_stride + at, mask=at < dim, other=0)
    tl.atomic_add(out_ptr + row * dim + at, values, mask=at < dim)


def scatter_add_rows(values: torch.Tensor, ids: torch.Tensor, num_rows: int) -> torch.Tensor:
    """Sums of values, int32[tokens, dim] with any row stride, by index."""
    tokens, dim = values.shape
    out = torch.zeros((num_rows, dim), dtype=values.dtype, device=values.device)
    block = 64
    scatter_add_rows_kernel[(tokens, triton.cdiv(dim, block))](
        values, ids, out, values.stride(0), dim, BLOCK=block, num_warps=1
    )
    return out
