"""1-D max pooling: one program a strip of the outputs of one channel."""

import torch
import triton
import triton.language as tl


@triton.jit
def max_pool1d_kernel(
    x_ptr, out_ptr, x_row, length, count, window, stride, pad, BLOCK: tl.constexpr
):
    """Finds the maxima of BLOCK windows."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    top = tl.full([BLOCK], float("-inf"), tl.float16)
    for i in range(0, window):
        place = at * stride - pad + i
        inside = (place >= 0) & (place < length) & (at < count)
        top = tl.maximum(
            top, tl.load(x_ptr + row * x_row + place, mask=inside, other=float("-inf"))
        )
    tl.store(out_ptr + row * count + at, top, mask=at < count)


def max_pool1d(x: torch.Tensor, window: int, stride: int, pad: int) -> torch.Tensor:
    """Pools x, float16[batch, channels, length], whose rows may be padded."""
    batch, channels, length = x.shape
    count = (length + 2 * pad - window) // stride + 1
    out = torch.empty((batch, channels, count), dtype=x.dtype, device=x.device)
    grid = (batch * channels, triton.cdiv(count, 512))
    max_pool1d_kernel[grid](x, out, x.stride(1), length, count, window, stride, pad, BLOCK=512)
    return out
