"""Normal samples: one program a strip of one row; each element computes its own Philox block."""

import torch
import triton
import triton.language as tl


@triton.jit
def gaussian_sample_kernel(
    mean_ptr, logvar_ptr, out_ptr, mean_row, logvar_row, cols, seed, offset, BLOCK: tl.constexpr
):
    """Draws BLOCK normal numbers, scales and shifts them."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < cols
    element = row * cols + at
    counter = element // 4
    high = counter * 0 + offset
    w0, w1, w2, w3 = tl.philox(
        seed,
        counter.to(tl.uint32),
        (counter >> 32).to(tl.uint32),
        high.to(tl.uint32),
        (high >> 32).to(tl.uint32),
    )
    first = element % 4 < 2
    u = ((tl.where(first, w0, w2) >> 8) + 1).to(tl.float32) * (1.0 / 16777216.0)
    v = (tl.where(first, w1, w3) >> 8).to(tl.float32) * (1.0 / 16777216.0)
    angle = v * 6.283185307179586
    turn = tl.where(element % 2 == 0, tl.cos(angle), tl.sin(angle))
    z = tl.sqrt(-2.0 * tl.log(u)) * turn
    mean = tl.load(mean_ptr + row * mean_row + at, mask=inside, other=0.0).to(tl.float32)
    logvar = tl.load(logvar_ptr + row * logvar_row + at, mask=inside, other=0.0).to(tl.float32)
    out = mean + tl.exp(logvar * 0.5) * z
    tl.store(out_ptr + element, out.to(tl.float16), mask=inside)


def gaussian_sample(
    mean: torch.Tensor, logvar: torch.Tensor, seed: int, offset: int
) -> torch.Tensor:
    """A sample for each mean and logvar, float16[rows, cols] with any row strides."""
    rows, cols = mean.shape
    out = torch.empty((rows, cols), dtype=mean.dtype, device=mean.device)
    block = 256
    gaussian_sample_kernel[(rows, triton.cdiv(cols, block))](
        mean, logvar, out, mean.stride(0), logvar.stride(0), cols, seed, offset, BLOCK=block
    )
    return out
