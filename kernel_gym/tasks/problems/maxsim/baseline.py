"""Late interaction: one program a query and a document, 32 document tokens at a time."""

import torch
import triton
import triton.language as tl


@triton.jit
def maxsim_kernel(
    query_ptr,
    doc_ptr,
    length_ptr,
    out_ptr,
    query_row,
    doc_row,
    query_len,
    docs,
    doc_len,
    width,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Scores one pair."""
    query = tl.program_id(1).to(tl.int64)
    doc = tl.program_id(0).to(tl.int64)
    length = tl.load(length_ptr + doc)
    lane = tl.arange(0, WIDTH)
    score = 0.0
    for first in range(0, query_len, ROWS):
        row = first + tl.arange(0, ROWS)
        q = tl.load(
            query_ptr + (query * query_len + row[:, None]) * query_row + lane[None, :],
            mask=(row[:, None] < query_len) & (lane[None, :] < width),
            other=0.0,
        )
        best = tl.full([ROWS], float("-inf"), tl.float32)
        for start in range(0, length, COLS):
            col = start + tl.arange(0, COLS)
            d = tl.load(
                doc_ptr + (doc * doc_len + col[None, :]) * doc_row + lane[:, None],
                mask=(col[None, :] < length) & (lane[:, None] < width),
                other=0.0,
            )
            products = tl.where(col[None, :] < length, tl.dot(q, d), float("-inf"))
            best = tl.maximum(best, tl.max(products, axis=1))
        score += tl.sum(tl.where(row < query_len, best, 0.0), axis=0)
    tl.store(out_ptr + query * docs + doc, score)


def maxsim(query: torch.Tensor, doc: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
    """Scores of float16 tokens, [count, tokens, width] each, whose rows may be padded."""
    queries, query_len, width = query.shape
    docs, doc_len, _ = doc.shape
    out = torch.empty((queries, docs), dtype=torch.float32, device=query.device)
    maxsim_kernel[(docs, queries)](
        query,
        doc,
        length,
        out,
        query.stride(1),
        doc.stride(1),
        query_len,
        docs,
        doc_len,
        width,
        ROWS=32,
        COLS=32,
        WIDTH=triton.next_power_of_2(width),
    )
    return out
