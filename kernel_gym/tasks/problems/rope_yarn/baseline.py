"""Rotary embedding with its angles: one program a head of one token."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_yarn_kernel(
    x_ptr,
    position_ptr,
    frequency_ptr,
    out_ptr,
    x_token,
    x_head,
    heads,
    half,
    attention,
    BLOCK: tl.constexpr,
):
    """Computes sine and cosine anew for every head."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    at = tl.arange(0, BLOCK)
    inside = at < half
    frequency = tl.load(frequency_ptr + at, mask=inside, other=0.0)
    angle = tl.load(position_ptr + token).to(tl.float32) * frequency
    cos = tl.cos(angle) * attention
    sin = tl.sin(angle) * attention
    x_base = x_ptr + token * x_token + head * x_head
    a = tl.load(x_base + 2 * at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x_base + 2 * at + 1, mask=inside, other=0.0).to(tl.float32)
    out = out_ptr + (token * heads + head) * 2 * half
    tl.store(out + 2 * at, (a * cos - b * sin).to(tl.float16), mask=inside)
    tl.store(out + 2 * at + 1, (b * cos + a * sin).to(tl.float16), mask=inside)


def rope_yarn(
    x: torch.Tensor, position: torch.Tensor, frequency: torch.Tensor, attention: float
) -> torch.Tensor:
    """Rotates x, float16[tokens, heads, head_dim] with any token and head stride."""
    tokens, heads, width = x.shape
    out = torch.empty((tokens, heads, width), dtype=x.dtype, device=x.device)
    rope_yarn_kernel[(tokens, heads)](
        x,
        position,
        frequency,
        out,
        *x.stride()[:2],
        heads,
        width // 2,
        attention,
        BLOCK=triton.next_power_of_2(width // 2),
        num_warps=1,
    )
    return out
