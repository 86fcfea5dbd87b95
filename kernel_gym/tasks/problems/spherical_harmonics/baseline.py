"""Spherical harmonics: one program a strip of vectors."""

import torch
import triton
import triton.language as tl


@triton.jit
def harmonics_kernel(vector_ptr, out_ptr, vector_row, edges, eps, BLOCK: tl.constexpr):
    """Computes the harmonics of BLOCK vectors."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < edges
    base = vector_ptr + at * vector_row
    x = tl.load(base, mask=inside, other=0.0)
    y = tl.load(base + 1, mask=inside, other=0.0)
    z = tl.load(base + 2, mask=inside, other=0.0)
    factor = 1.0 / (tl.sqrt(x * x + y * y + z * z) + eps)
    x *= factor
    y *= factor
    z *= factor
    out = out_ptr + at * 9
    tl.store(out, tl.full([BLOCK], 1.0, tl.float32), mask=inside)
    tl.store(out + 1, 1.7320508075688772 * x, mask=inside)
    tl.store(out + 2, 1.7320508075688772 * y, mask=inside)
    tl.store(out + 3, 1.7320508075688772 * z, mask=inside)
    tl.store(out + 4, 3.872983346207417 * x * z, mask=inside)
    tl.store(out + 5, 3.872983346207417 * x * y, mask=inside)
    tl.store(out + 6, 2.23606797749979 * (y * y - 0.5 * (x * x + z * z)), mask=inside)
    tl.store(out + 7, 3.872983346207417 * y * z, mask=inside)
    tl.store(out + 8, 1.9364916731037085 * (z * z - x * x), mask=inside)


def spherical_harmonics(vector: torch.Tensor, eps: float) -> torch.Tensor:
    """Harmonics of vector, float32[edges, 3] with any row stride."""
    edges = vector.shape[0]
    out = torch.empty((edges, 9), dtype=vector.dtype, device=vector.device)
    grid = (triton.cdiv(edges, 256),)
    harmonics_kernel[grid](vector, out, vector.stride(0), edges, eps, BLOCK=256)
    return out
