"""Block-sparse product: one program a strip of outputs by a tile of rows."""

import torch
import triton
import triton.language as tl


@triton.jit
def block_sparse_kernel(
    x_ptr,
    w_ptr,
    row_ptr,
    start_ptr,
    out_ptr,
    rows,
    x_row,
    w_row,
    out_row,
    block,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Adds up the products of one strip's blocks."""
    at = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    strip = tl.program_id(1)
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for b in range(tl.load(start_ptr + strip), tl.load(start_ptr + strip + 1)):
        first = tl.load(row_ptr + b) * block
        x = tl.load(
            x_ptr + at[:, None] * x_row + first + lane[None, :],
            mask=(at[:, None] < rows) & (lane[None, :] < block),
            other=0.0,
        )
        w = tl.load(
            w_ptr + (b.to(tl.int64) * block + lane[:, None]) * w_row + lane[None, :],
            mask=(lane[:, None] < block) & (lane[None, :] < block),
            other=0.0,
        )
        total = tl.dot(x, w, total)
    tl.store(
        out_ptr + at[:, None] * out_row + strip * block + lane[None, :],
        total.to(tl.float16),
        mask=(at[:, None] < rows) & (lane[None, :] < block),
    )


def block_sparse_matmul(
    x: torch.Tensor, w: torch.Tensor, row: torch.Tensor, start: torch.Tensor
) -> torch.Tensor:
    """Product of x, float16[rows, strips_in * block]; rows of x and w may be padded."""
    rows, block, strips = x.shape[0], w.shape[1], start.shape[0] - 1
    out = torch.empty((rows, strips * block), dtype=x.dtype, device=x.device)
    block_sparse_kernel[(triton.cdiv(rows, 32), strips)](
        x,
        w,
        row,
        start,
        out,
        rows,
        x.stride(0),
        w.stride(1),
        strips * block,
        block,
        ROWS=32,
        BLOCK=triton.next_power_of_2(block),
    )
    return out
