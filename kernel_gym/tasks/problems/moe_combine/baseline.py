"""Combination of experts: one program a strip of one token's row."""

import torch
import triton
import triton.language as tl


@triton.jit
def combine_kernel(
    y_ptr,
    place_ptr,
    weight_ptr,
    residual_ptr,
    out_ptr,
    y_row,
    place_row,
    weight_row,
    residual_row,
    top_k,
    hidden,
    factor,
    BLOCK: tl.constexpr,
):
    """Adds up BLOCK columns of one token's choices."""
    token = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(0, top_k):
        place = tl.load(place_ptr + token * place_row + k).to(tl.int64)
        weight = tl.load(weight_ptr + token * weight_row + k)
        inside = (at < hidden) & (place >= 0)
        total += weight * tl.load(y_ptr + place * y_row + at, mask=inside, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + token * residual_row + at, mask=at < hidden, other=0.0)
    out = residual.to(tl.float32) + factor * total
    tl.store(out_ptr + token * hidden + at, out.to(tl.float16), mask=at < hidden)


def moe_combine(
    y: torch.Tensor,
    place: torch.Tensor,
    weight: torch.Tensor,
    residual: torch.Tensor,
    factor: float,
) -> torch.Tensor:
    """Combines the rows of y, float16[rows, hidden]; all matrices may have any row stride."""
    tokens, hidden = residual.shape
    out = torch.empty((tokens, hidden), dtype=y.dtype, device=y.device)
    combine_kernel[(tokens, triton.cdiv(hidden, 512))](
        y,
        place,
        weight,
        residual,
        out,
        y.stride(0),
        place.stride(0),
        weight.stride(0),
        residual.stride(0),
        place.shape[1],
        hidden,
        factor,
        BLOCK=512,
    )
    return out
