"""Masked softmax: one program a query, three passes over its keys in blocks."""

import torch
import triton
import triton.language as tl


@triton.jit
def biased_scores(x_row, bias_row, keep_row, at, keys, scale):
    """Scores of a block of keys; the lowest float32 where a key is masked."""
    inside = at < keys
    x = tl.load(x_row + at, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_row + at, mask=inside, other=0.0).to(tl.float32)
    keep = tl.load(keep_row + at, mask=inside, other=0)
    return tl.where(keep != 0, x * scale + bias, -3.4e38)


@triton.jit
def masked_softmax_kernel(
    x_ptr,
    bias_ptr,
    keep_ptr,
    out_ptr,
    x_batch,
    x_head,
    x_query,
    bias_head,
    bias_query,
    keep_batch,
    heads,
    queries,
    keys,
    scale,
    BLOCK: tl.constexpr,
):
    """Finds maximum and sum over the kept keys of one query, then writes the quotients."""
    query = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    batch = tl.program_id(2).to(tl.int64)
    x_row = x_ptr + batch * x_batch + head * x_head + query * x_query
    bias_row = bias_ptr + head * bias_head + query * bias_query
    keep_row = keep_ptr + batch * keep_batch
    out_row = out_ptr + ((batch * heads + head) * queries + query) * keys
    lane = tl.arange(0, BLOCK)

    top = tl.full([BLOCK], -3.4e38, tl.float32)
    for start in range(0, keys, BLOCK):
        top = tl.maximum(top, biased_scores(x_row, bias_row, keep_row, start + lane, keys, scale))
    row_max = tl.max(top, axis=0)

    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, keys, BLOCK):
        logits = biased_scores(x_row, bias_row, keep_row, start + lane, keys, scale)
        total += tl.where(logits > -3.0e38, tl.exp(logits - row_max), 0.0)
    row_sum = tl.sum(total, axis=0)
    inverse = tl.where(row_sum > 0.0, 1.0 / row_sum, 0.0)

    for start in range(0, keys, BLOCK):
        logits = biased_scores(x_row, bias_row, keep_row, start + lane, keys, scale)
        out = tl.where(logits > -3.0e38, tl.exp(logits - row_max) * inverse, 0.0)
        tl.store(out_row + start + lane, out.to(tl.float16), mask=start + lane < keys)


def masked_softmax(
    x: torch.Tensor, bias: torch.Tensor, keep: torch.Tensor, scale: float
) -> torch.Tensor:
    """Softmax over the last axis of x, float16[batch, heads, queries, keys], any outer strides."""
    batch, heads, queries, keys = x.shape
    out = torch.empty((batch, heads, queries, keys), dtype=x.dtype, device=x.device)
    masked_softmax_kernel[(queries, heads, batch)](
        x,
        bias,
        keep,
        out,
        *x.stride()[:3],
        *bias.stride()[:2],
        keep.stride(0),
        heads,
        queries,
        keys,
        scale,
        BLOCK=128,
    )
    return out
