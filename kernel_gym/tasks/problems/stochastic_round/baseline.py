"""Stochastic rounding: one program a strip of a row; each element computes its own Philox block."""

import torch
import triton
import triton.language as tl


@triton.jit
def stochastic_round_kernel(x_ptr, out_ptr, x_row, cols, seed, offset, BLOCK: tl.constexpr):
    """Rounds BLOCK elements by sixteen random bits each."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < cols
    element = row * cols + at
    counter = element // 8
    high = counter * 0 + offset
    w0, w1, w2, w3 = tl.philox(
        seed,
        counter.to(tl.uint32),
        (counter >> 32).to(tl.uint32),
        high.to(tl.uint32),
        (high >> 32).to(tl.uint32),
    )
    lane = element % 8
    word = tl.where(lane < 4, tl.where(lane < 2, w0, w1), tl.where(lane < 6, w2, w3))
    half = tl.where(element % 2 == 0, word & 0xFFFF, word >> 16)
    x = tl.load(x_ptr + row * x_row + at, mask=inside, other=0.0)
    bits = (x.to(tl.uint32, bitcast=True) + half) >> 16
    out = bits.to(tl.uint16).to(tl.bfloat16, bitcast=True)
    tl.store(out_ptr + element, out, mask=inside)


def stochastic_round(x: torch.Tensor, seed: int, offset: int) -> torch.Tensor:
    """Rounds x, float32[rows, cols] with any row stride, to bfloat16."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=torch.bfloat16, device=x.device)
    block = 256
    stochastic_round_kernel[(rows, triton.cdiv(cols, block))](
        x, out, x.stride(0), cols, seed, offset, BLOCK=block
    )
    return out
