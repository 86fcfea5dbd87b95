"""Group quantisation to fp8: one program a group."""

import torch
import triton
import triton.language as tl


@triton.jit
def quantize_kernel(x_ptr, q_ptr, scale_ptr, x_row, cols, GROUP: tl.constexpr):
    """Scales and rounds one group."""
    row = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    at = group * GROUP + tl.arange(0, GROUP)
    x = tl.load(x_ptr + row * x_row + at).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-10) / 448.0
    code = tl.clamp(x / scale, -448.0, 448.0)
    tl.store(q_ptr + row * cols + at, code.to(q_ptr.dtype.element_ty))
    tl.store(scale_ptr + row * (cols // GROUP) + group, scale)


def quantize_fp8_group_ocp(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and scales of x, bfloat16[rows, cols] with any row stride."""
    rows, cols = x.shape
    q = torch.empty((rows, cols), dtype=torch.float8_e4m3fn, device=x.device)
    scale = torch.empty((rows, cols // 128), dtype=torch.float32, device=x.device)
    quantize_kernel[(rows, cols // 128)](x, q, scale, x.stride(0), cols, GROUP=128, num_warps=1)
    return q, scale
