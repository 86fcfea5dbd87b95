"""MXFP8 quantisation: one program 16 blocks of one row."""

import torch
import triton
import triton.language as tl


@triton.jit
def mxfp8_kernel(x_ptr, q_ptr, scale_ptr, x_row, blocks, BLOCKS: tl.constexpr):
    """Quantises BLOCKS blocks of 32 columns."""
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1) * BLOCKS + tl.arange(0, BLOCKS)
    inside = block[:, None] < blocks
    at = block[:, None] * 32 + tl.arange(0, 32)[None, :]
    x = tl.load(x_ptr + row * x_row + at, mask=inside, other=0.0).to(tl.float32)
    top = tl.max(tl.abs(x), axis=1)
    exponent = ((top.to(tl.int32, bitcast=True) >> 23) & 255) - 8
    scale = tl.where(top > 0.0, tl.maximum(exponent, 0), 0)
    factor = ((254 - scale) << 23).to(tl.float32, bitcast=True)
    code = tl.clamp(x * factor[:, None], -448.0, 448.0)
    tl.store(q_ptr + row * blocks * 32 + at, code.to(q_ptr.dtype.element_ty), mask=inside)
    tl.store(scale_ptr + row * blocks + block, scale.to(tl.uint8), mask=block < blocks)


def quantize_mxfp8_ocp(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and scales of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    q = torch.empty((rows, cols), dtype=torch.float8_e4m3fn, device=x.device)
    scale = torch.empty((rows, cols // 32), dtype=torch.uint8, device=x.device)
    grid = (rows, triton.cdiv(cols // 32, 16))
    mxfp8_kernel[grid](x, q, scale, x.stride(0), cols // 32, BLOCKS=16)
    return q, scale
