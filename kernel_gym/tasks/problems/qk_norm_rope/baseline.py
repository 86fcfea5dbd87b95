"""Norm and rotation by head: one program a head of one token, one launch for q, one for k."""

import torch
import triton
import triton.language as tl


@triton.jit
def norm_rope_kernel(
    x_ptr,
    weight_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    x_token,
    x_head,
    cos_row,
    sin_row,
    heads,
    half,
    eps,
    BLOCK: tl.constexpr,
):
    """Normalises one head and rotates its halves."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    at = tl.arange(0, BLOCK)
    inside = at < half
    x_base = x_ptr + token * x_token + head * x_head
    a = tl.load(x_base + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x_base + half + at, mask=inside, other=0.0).to(tl.float32)
    norm = 1.0 / tl.sqrt(tl.sum(a * a + b * b, axis=0) / (2 * half) + eps)
    a *= norm * tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    b *= norm * tl.load(weight_ptr + half + at, mask=inside, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + token * cos_row + at, mask=inside, other=0.0)
    sin = tl.load(sin_ptr + token * sin_row + at, mask=inside, other=0.0)
    out = out_ptr + (token * heads + head) * 2 * half
    tl.store(out + at, (a * cos - b * sin).to(tl.float16), mask=inside)
    tl.store(out + half + at, (b * cos + a * sin).to(tl.float16), mask=inside)


def norm_rope(
    x: torch.Tensor, weight: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, eps: float
) -> torch.Tensor:
    """Normalises and rotates x, float16[tokens, heads, head_dim]."""
    tokens, heads, width = x.shape
    out = torch.empty((tokens, heads, width), dtype=x.dtype, device=x.device)
    norm_rope_kernel[(tokens, heads)](
        x,
        weight,
        cos,
        sin,
        out,
        *x.stride()[:2],
        cos.stride(0),
        sin.stride(0),
        heads,
        width // 2,
        eps,
        BLOCK=128,
        num_warps=1,
    )
    return out


def qk_norm_rope(
    q: torch.Tensor,
    k: torch.Tensor,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys, float16[tokens, heads, head_dim] with any outer strides."""
    return norm_rope(q, q_weight, cos, sin, eps), norm_rope(k, k_weight, cos, sin, eps)
