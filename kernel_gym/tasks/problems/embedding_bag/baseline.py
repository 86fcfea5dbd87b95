"""Embedding bags: one program sums a strip of one bag, row after row."""

import torch
import triton
import triton.language as tl


@triton.jit
def embedding_bag_kernel(
    table_ptr, ids_ptr, weights_ptr, offsets_ptr, out_ptr, table_stride, dim, BLOCK: tl.constexpr
):
    """Adds BLOCK elements of the weighted rows of one bag."""
    bag = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    first = tl.load(offsets_ptr + bag)
    last = tl.load(offsets_ptr + bag + 1)
    total = tl.zeros([BLOCK], tl.float32)
    for j in range(first, last):
        row = tl.load(ids_ptr + j)
        values = tl.load(table_ptr + row * table_stride + at, mask=at < dim, other=0.0)
        total += tl.load(weights_ptr + j) * values.to(tl.float32)
    tl.store(out_ptr + bag * dim + at, total.to(tl.float16), mask=at < dim)


def embedding_bag(
    table: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    """Weighted sums of rows of table, float16[vocab, dim] with any row stride."""
    bags, dim = offsets.shape[0] - 1, table.shape[1]
    out = torch.empty((bags, dim), dtype=table.dtype, device=table.device)
    block = 64
    embedding_bag_kernel[(bags, triton.cdiv(dim, block))](
        table, ids, weights, offsets, out, table.stride(0), dim, BLOCK=block, num_warps=1
    )
    return out
