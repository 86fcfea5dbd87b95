"""Fourier transform: one program a row in registers; bit reversal first, then radix-2 steps."""

import torch
import triton
import triton.language as tl


@triton.jit
def fft_kernel(x_ptr, out_ptr, x_row, sign, factor, SIZE: tl.constexpr, BITS: tl.constexpr):
    """Transforms one row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, SIZE)
    source = tl.zeros([SIZE], tl.int32)
    for bit in tl.static_range(BITS):
        source = source | (((at >> bit) & 1) << (BITS - 1 - bit))
    base = x_ptr + (row * SIZE + source) * x_row
    real = tl.load(base)
    imag = tl.load(base + 1)
    for bit in tl.static_range(BITS):
        angle = sign * 3.141592653589793 / (1 << bit) * tl.arange(0, 1 << bit).to(tl.float32)
        cos = tl.cos(angle)[None, :]
        sin = tl.sin(angle)[None, :]
        low_real, high_real = tl.split(
            tl.permute(tl.reshape(real, (SIZE // (2 << bit), 2, 1 << bit)), (0, 2, 1))
        )
        low_imag, high_imag = tl.split(
            tl.permute(tl.reshape(imag, (SIZE // (2 << bit), 2, 1 << bit)), (0, 2, 1))
        )
        turned_real = high_real * cos - high_imag * sin
        turned_imag = high_real * sin + high_imag * cos
        both_real = tl.join(low_real + turned_real, low_real - turned_real)
        both_imag = tl.join(low_imag + turned_imag, low_imag - turned_imag)
        real = tl.reshape(tl.permute(both_real, (0, 2, 1)), (SIZE,))
        imag = tl.reshape(tl.permute(both_imag, (0, 2, 1)), (SIZE,))
    target = out_ptr + (row * SIZE + at) * 2
    tl.store(target, real * factor)
    tl.store(target + 1, imag * factor)


def fft_rows(x: torch.Tensor, inverse: int) -> torch.Tensor:
    """Transform of x, float32[rows, size, 2], whose pairs may be padded."""
    rows, size = x.shape[:2]
    out = torch.empty((rows, size, 2), dtype=x.dtype, device=x.device)
    fft_kernel[(rows,)](
        x,
        out,
        x.stride(1),
        1.0 if inverse else -1.0,
        1.0 / size if inverse else 1.0,
        SIZE=size,
        BITS=size.bit_length() - 1,
        num_warps=max(1, min(8, size // 256)),
    )
    return out
