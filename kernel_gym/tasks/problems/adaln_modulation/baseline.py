"""Adaptive layer norm: one program a token, a pass each for mean, variance and output."""

import torch
import triton
import triton.language as tl


@triton.jit
def adaln_kernel(
    x_ptr,
    shift_ptr,
    scale_ptr,
    out_ptr,
    x_batch,
    x_token,
    shift_row,
    scale_row,
    tokens,
    channels,
    eps,
    BLOCK: tl.constexpr,
):
    """Normalises and modulates one token."""
    batch = tl.program_id(1).to(tl.int64)
    token = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + batch * x_batch + token * x_token
    lane = tl.arange(0, BLOCK)

    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, channels, BLOCK):
        at = start + lane
        total += tl.load(x_row + at, mask=at < channels, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / channels

    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, channels, BLOCK):
        at = start + lane
        x = tl.load(x_row + at, mask=at < channels, other=0.0).to(tl.float32)
        centred = tl.where(at < channels, x - mean, 0.0)
        squares += centred * centred
    norm = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / channels + eps)

    for start in range(0, channels, BLOCK):
        at = start + lane
        inside = at < channels
        x = tl.load(x_row + at, mask=inside, other=0.0).to(tl.float32)
        shift = tl.load(shift_ptr + batch * shift_row + at, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(scale_ptr + batch * scale_row + at, mask=inside, other=0.0).to(tl.float32)
        out = (x - mean) * norm * (1.0 + scale) + shift
        at_out = (batch * tokens + token) * channels + at
        tl.store(out_ptr + at_out, out.to(tl.float16), mask=inside)


def adaln_modulation(
    x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor, eps: float
) -> torch.Tensor:
    """Modulated tokens of x, float16[batch, tokens, channels] with any outer strides."""
    batch, tokens, channels = x.shape
    out = torch.empty((batch, tokens, channels), dtype=x.dtype, device=x.device)
    adaln_kernel[(tokens, batch)](
        x,
        shift,
        scale,
        out,
        *x.stride()[:2],
        shift.stride(0),
        scale.stride(0),
        tokens,
        channels,
        eps,
        BLOCK=1024,
    )
    return out
