"""Clipping: sums of squares by strip, their sum in one program, then the scaled gradient."""

import torch
import triton
import triton.language as tl


@triton.jit
def squares_kernel(grad_ptr, parts_ptr, count, BLOCK: tl.constexpr):
    """Adds the squares of BLOCK elements."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    grad = tl.load(grad_ptr + at, mask=at < count, other=0.0)
    tl.store(parts_ptr + tl.program_id(0), tl.sum(grad * grad, axis=0))


@triton.jit
def norm_kernel(parts_ptr, norm_ptr, count, BLOCK: tl.constexpr):
    """Adds all partial sums and takes the root."""
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(parts_ptr + at, mask=at < count, other=0.0)
    tl.store(norm_ptr, tl.sqrt(tl.sum(total, axis=0)))


@triton.jit
def scale_kernel(grad_ptr, norm_ptr, out_ptr, count, limit, BLOCK: tl.constexpr):
    """Scales BLOCK elements."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    factor = tl.minimum(limit / (tl.load(norm_ptr) + 1e-6), 1.0)
    grad = tl.load(grad_ptr + at, mask=at < count, other=0.0)
    tl.store(out_ptr + at, grad * factor, mask=at < count)


def grad_norm_clip(grad: torch.Tensor, limit: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Clips grad, float32[count]."""
    count = grad.shape[0]
    strips = triton.cdiv(count, 2048)
    parts = torch.empty((strips,), dtype=torch.float32, device=grad.device)
    norm = torch.empty((1,), dtype=torch.float32, device=grad.device)
    out = torch.empty_like(grad)
    squares_kernel[(strips,)](grad, parts, count, BLOCK=2048)
    norm_kernel[(1,)](parts, norm, strips, BLOCK=1024)
    scale_kernel[(strips,)](grad, norm, out, count, limit, BLOCK=2048)
    return out, norm
