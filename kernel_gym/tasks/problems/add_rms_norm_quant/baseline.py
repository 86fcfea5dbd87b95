"""Addition, norm and quantisation: one program a row, three passes over it in blocks."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add_rms_norm_quant_kernel(
    x_ptr,
    residual_ptr,
    weight_ptr,
    q_ptr,
    scale_ptr,
    sum_ptr,
    x_row,
    residual_row,
    cols,
    eps,
    BLOCK: tl.constexpr,
):
    """Adds and squares, then finds the largest normalised magnitude, then writes the codes."""
    row = tl.program_id(0).to(tl.int64)
    x_base = x_ptr + row * x_row
    residual_base = residual_ptr + row * residual_row
    lane = tl.arange(0, BLOCK)

    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        h = tl.load(x_base + at, mask=inside, other=0.0).to(tl.float32)
        h += tl.load(residual_base + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(sum_ptr + row * cols + at, h.to(tl.float16), mask=inside)
        squares += h * h
    norm = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)

    top = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        h = tl.load(x_base + at, mask=inside, other=0.0).to(tl.float32)
        h += tl.load(residual_base + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
        top = tl.maximum(top, tl.abs(h * norm * weight))
    scale = tl.maximum(tl.max(top, axis=0), 1e-8) / 127.0
    tl.store(scale_ptr + row, scale)

    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        h = tl.load(x_base + at, mask=inside, other=0.0).to(tl.float32)
        h += tl.load(residual_base + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
        code = libdevice.nearbyint(h * norm * weight / scale)
        tl.store(q_ptr + row * cols + at, code.to(tl.int8), mask=inside)


def add_rms_norm_quant(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Codes, scales and sum of float16[rows, cols] matrices with any row strides."""
    rows, cols = x.shape
    q = torch.empty((rows, cols), dtype=torch.int8, device=x.device)
    scale = torch.empty((rows,), dtype=torch.float32, device=x.device)
    total = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    add_rms_norm_quant_kernel[(rows,)](
        x, residual, weight, q, scale, total, x.stride(0), residual.stride(0), cols, eps, BLOCK=1024
    )
    return q, scale, total
