"""Rotary embedding in two dimensions: one program rotates one head of one token."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_2d_kernel(
    x_ptr,
    place_ptr,
    pitch_ptr,
    out_ptr,
    x_token,
    x_head,
    place_row,
    heads,
    half,
    BLOCK: tl.constexpr,
):
    """Computes the angles of a token and rotates the two halves of one head."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    at = tl.arange(0, BLOCK)
    inside = at < half
    quarter = half // 2
    row = tl.load(place_ptr + token * place_row).to(tl.float32)
    column = tl.load(place_ptr + token * place_row + 1).to(tl.float32)
    pitch = tl.load(pitch_ptr + at % quarter, mask=inside, other=0.0)
    angle = tl.where(at < quarter, row, column) * pitch
    cos, sin = tl.cos(angle), tl.sin(angle)
    x_at = x_ptr + token * x_token + head * x_head
    a = tl.load(x_at + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x_at + half + at, mask=inside, other=0.0).to(tl.float32)
    out_at = out_ptr + (token * heads + head) * 2 * half
    tl.store(out_at + at, (a * cos - b * sin).to(tl.float16), mask=inside)
    tl.store(out_at + half + at, (b * cos + a * sin).to(tl.float16), mask=inside)


def rope_2d(x: torch.Tensor, place: torch.Tensor, pitch: torch.Tensor) -> torch.Tensor:
    """Rotates x, float16[tokens, heads, head_dim] with any token and head stride."""
    tokens, heads, head_dim = x.shape
    out = torch.empty((tokens, heads, head_dim), dtype=x.dtype, device=x.device)
    rope_2d_kernel[(tokens, heads)](
        x,
        place,
        pitch,
        out,
        *x.stride()[:2],
        place.stride(0),
        heads,
        head_dim // 2,
        BLOCK=128,
        num_warps=1,
    )
    return out
