"""Rotary embedding by sections: one program a head of one token."""

import torch
import triton
import triton.language as tl


@triton.jit
def mrope_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    x_row,
    cos_row,
    sin_row,
    tokens,
    heads,
    half,
    temporal,
    spatial,
    BLOCK: tl.constexpr,
):
    """Turns the pairs of one head."""
    token = tl.program_id(0).to(tl.int64)
    row = token * heads + tl.program_id(1)
    pair = tl.arange(0, BLOCK)
    inside = pair < half
    axis = (pair >= temporal).to(tl.int64) + (pair >= temporal + spatial).to(tl.int64)
    cos = tl.load(cos_ptr + (axis * tokens + token) * cos_row + pair, mask=inside, other=0.0)
    sin = tl.load(sin_ptr + (axis * tokens + token) * sin_row + pair, mask=inside, other=0.0)
    low = tl.load(x_ptr + row * x_row + pair, mask=inside, other=0.0).to(tl.float32)
    high = tl.load(x_ptr + row * x_row + half + pair, mask=inside, other=0.0).to(tl.float32)
    out = out_ptr + row * 2 * half + pair
    tl.store(out, (low * cos - high * sin).to(tl.float16), mask=inside)
    tl.store(out + half, (high * cos + low * sin).to(tl.float16), mask=inside)


def mrope(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, temporal: int, spatial: int
) -> torch.Tensor:
    """Turns x, float16[tokens, heads, head_dim]; rows of all tensors may be padded."""
    tokens, heads, width = x.shape
    out = torch.empty((tokens, heads, width), dtype=x.dtype, device=x.device)
    mrope_kernel[(tokens, heads)](
        x,
        cos,
        sin,
        out,
        x.stride(1),
        cos.stride(1),
        sin.stride(1),
        tokens,
        heads,
        width // 2,
        temporal,
        spatial,
        BLOCK=triton.next_power_of_2(width // 2),
        num_warps=1,
    )
    return out
