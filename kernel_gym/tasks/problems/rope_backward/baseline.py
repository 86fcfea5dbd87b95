"""RoPE backward: one program a head of one token, first of the queries and then of the keys."""

import torch
import triton
import triton.language as tl


@triton.jit
def rotate_back(source, target, cos, sin, at, half):
    """Rotates one head back."""
    inside = at < half
    low = tl.load(source + at, mask=inside, other=0.0).to(tl.float32)
    high = tl.load(source + half + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(target + at, (low * cos + high * sin).to(tl.float16), mask=inside)
    tl.store(target + half + at, (high * cos - low * sin).to(tl.float16), mask=inside)


@triton.jit
def rope_backward_kernel(
    gq_ptr,
    gk_ptr,
    cos_ptr,
    sin_ptr,
    position_ptr,
    dq_ptr,
    dk_ptr,
    gq_row,
    gk_row,
    cos_row,
    sin_row,
    heads,
    kv_heads,
    half,
    BLOCK: tl.constexpr,
):
    """Takes the gradient of one head of one token."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    at = tl.arange(0, BLOCK)
    inside = at < half
    position = tl.load(position_ptr + token)
    cos = tl.load(cos_ptr + position * cos_row + at, mask=inside, other=0.0)
    sin = tl.load(sin_ptr + position * sin_row + at, mask=inside, other=0.0)
    if head < heads:
        row = token * heads + head
        rotate_back(gq_ptr + row * gq_row, dq_ptr + row * 2 * half, cos, sin, at, half)
    else:
        row = token * kv_heads + head - heads
        rotate_back(gk_ptr + row * gk_row, dk_ptr + row * 2 * half, cos, sin, at, half)


def rope_backward(
    gq: torch.Tensor, gk: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, position: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients for gq and gk, float16[tokens, heads, head_dim] whose rows may be padded."""
    tokens, heads, width = gq.shape
    kv_heads = gk.shape[1]
    dq = torch.empty((tokens, heads, width), dtype=gq.dtype, device=gq.device)
    dk = torch.empty((tokens, kv_heads, width), dtype=gk.dtype, device=gk.device)
    rope_backward_kernel[(tokens, heads + kv_heads)](
        gq,
        gk,
        cos,
        sin,
        position,
        dq,
        dk,
        gq.stride(1),
        gk.stride(1),
        cos.stride(0),
        sin.stride(0),
        heads,
        kv_heads,
        width // 2,
        BLOCK=triton.next_power_of_2(width // 2),
        num_warps=1,
    )
    return dq, dk
