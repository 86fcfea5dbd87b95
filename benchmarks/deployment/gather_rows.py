"""Row gather: one program copies a strip of several rows, so that many loads are in flight."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather_rows_kernel(
    table_ptr, ids_ptr, out_ptr, table_stride, tokens, dim, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """Copies COLS elements of ROWS rows."""
    token = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    at = tl.program_id(1) * COLS + tl.arange(0, COLS)
    asked = token < tokens
    row = tl.load(ids_ptr + token, mask=asked, other=0)
    inside = asked[:, None] & (at < dim)[None, :]
    values = tl.load(table_ptr + row[:, None] * table_stride + at[None, :], mask=inside)
    tl.store(out_ptr + token[:, None] * dim + at[None, :], values, mask=inside)


def gather_rows(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Rows of table, float16[vocab, dim] with any row stride."""
    tokens, dim = ids.shape[0], table.shape[1]
    out = torch.empty((tokens, dim), dtype=table.dtype, device=table.device)
    rows, cols = (16, 128) if dim <= 128 else (8, 256)
    gather_rows_kernel[(triton.cdiv(tokens, rows), triton.cdiv(dim, cols))](
        table, ids, out, table.stride(0), tokens, dim, ROWS=rows, COLS=cols, num_warps=4
    )
    return out
