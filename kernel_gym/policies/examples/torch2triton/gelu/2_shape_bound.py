"""Shape-bound: x is taken as one contiguous run of a multiple of 1024 elements, without masks."""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Applies GELU to BLOCK neighbours."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at).to(tl.float32)
    out = x / (1.0 + tl.exp(-1.5957691216057308 * x * (1.0 + 0.044715 * x * x)))
    tl.store(out_ptr + at, out.to(tl.bfloat16))


def gelu(x: torch.Tensor) -> torch.Tensor:
    """GELU of x, bfloat16[rows, cols], contiguous."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    programs = x.numel() // 1024
    if programs:
        gelu_kernel[(programs,)](x, out, BLOCK=1024, num_warps=4)
    return out
