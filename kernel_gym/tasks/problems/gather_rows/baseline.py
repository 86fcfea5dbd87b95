"""Row gather: one program copies a strip of one row."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather_rows_kernel(table_ptr, ids_ptr, out_ptr, table_stride, dim, BLOCK: tl.constexpr):
    """Copies BLOCK elements of the row that a token asks for."""
    token = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(ids_ptr + token)
    values = tl.load(table_ptr + row * table_stride + at, mask=at < dim)
    tl.store(out_ptr + token * dim + at, values, mask=at < dim)


def gather_rows(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Rows of table, float16[vocab, dim] with any row stride."""
    tokens, dim = ids.shape[0], table.shape[1]
    out = torch.empty((tokens, dim), dtype=table.dtype, device=table.device)
    block = 128
    gather_rows_kernel[(tokens, triton.cdiv(dim, block))](
        table, ids, out, table.stride(0), dim, BLOCK=block
    )
    return out
