"""MXFP4 quantisation: one program 16 blocks of one row."""

import torch
import triton
import triton.language as tl


@triton.jit
def mxfp4_kernel(x_ptr, code_ptr, scale_ptr, x_row, blocks, BLOCKS: tl.constexpr):
    """Quantises BLOCKS blocks of 32 columns."""
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1) * BLOCKS + tl.arange(0, BLOCKS)
    inside = block[:, None] < blocks
    at = block[:, None] * 32 + tl.arange(0, 32)[None, :]
    x = tl.load(x_ptr + row * x_row + at, mask=inside, other=0.0).to(tl.float32)
    top = tl.max(tl.abs(x), axis=1)
    exponent = ((top.to(tl.int32, bitcast=True) >> 23) & 255) - 2
    scale = tl.where(top > 0.0, tl.maximum(exponent, 0), 0)
    factor = ((254 - scale) << 23).to(tl.float32, bitcast=True)
    size = tl.abs(x) * factor[:, None]
    index = (size > 0.25).to(tl.int32) + (size >= 0.75).to(tl.int32) + (size > 1.25).to(tl.int32)
    index += (size >= 1.75).to(tl.int32) + (size > 2.5).to(tl.int32) + (size >= 3.5).to(tl.int32)
    index += (size > 5.0).to(tl.int32)
    code = index + tl.where(x < 0.0, 8, 0)
    low, high = tl.split(tl.reshape(code, (BLOCKS, 16, 2)))
    byte = block[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(code_ptr + row * blocks * 16 + byte, (low + 16 * high).to(tl.uint8), mask=inside)
    tl.store(scale_ptr + row * blocks + block, scale.to(tl.uint8), mask=block < blocks)


def quantize_mxfp4(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and scales of x, float16[rows, cols] with any row stride."""
    rows, cols = x.shape
    code = torch.empty((rows, cols // 2), dtype=torch.uint8, device=x.device)
    scale = torch.empty((rows, cols // 32), dtype=torch.uint8, device=x.device)
    grid = (rows, triton.cdiv(cols // 32, 16))
    mxfp4_kernel[grid](x, code, scale, x.stride(0), cols // 32, BLOCKS=16)
    return code, scale
