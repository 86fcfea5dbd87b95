"""Rotary embedding: one program rotates one head of one token."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    token_stride,
    head_stride,
    cos_stride,
    sin_stride,
    heads,
    half,
    BLOCK: tl.constexpr,
):
    """Rotates the two halves of one head."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    at = tl.arange(0, BLOCK)
    inside = at < half
    cos = tl.load(cos_ptr + token * cos_stride + at, mask=inside, other=0.0)
    sin = tl.load(sin_ptr + token * sin_stride + at, mask=inside, other=0.0)
    x_head = x_ptr + token * token_stride + head * head_stride
    a = tl.load(x_head + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x_head + half + at, mask=inside, other=0.0).to(tl.float32)
    out_head = out_ptr + (token * heads + head) * 2 * half
    tl.store(out_head + at, (a * cos - b * sin).to(tl.float16), mask=inside)
    tl.store(out_head + half + at, (b * cos + a * sin).to(tl.float16), mask=inside)


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotates x, float16[tokens, heads, head_dim] with any token and head stride."""
    tokens, heads, head_dim = x.shape
    out = torch.empty((tokens, heads, head_dim), dtype=x.dtype, device=x.device)
    rope_kernel[(tokens, heads)](
        x,
        cos,
        sin,
        out,
        x.stride(0),
        x.stride(1),
        cos.stride(0),
        sin.stride(0),
        heads,
        head_dim // 2,
        BLOCK=128,
        num_warps=1,
    )
    return out
