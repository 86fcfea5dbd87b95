"""Sum and layer norm: one program a row; the first pass stores the sum, two more add up anew."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_layer_norm_kernel(
    x_ptr,
    residual_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    total_ptr,
    x_row,
    residual_row,
    cols,
    eps,
    BLOCK: tl.constexpr,
):
    """Adds and normalises one row, block by block."""
    row = tl.program_id(0).to(tl.int64)
    x_at = x_ptr + row * x_row
    residual_at = residual_ptr + row * residual_row
    lane = tl.arange(0, BLOCK)

    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_at + at, mask=at < cols, other=0.0).to(tl.float32)
        total = x + tl.load(residual_at + at, mask=at < cols, other=0.0).to(tl.float32)
        tl.store(total_ptr + row * cols + at, total.to(tl.float16), mask=at < cols)
        sums += total
    mean = tl.sum(sums, axis=0) / cols

    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_at + at, mask=at < cols, other=0.0).to(tl.float32)
        total = x + tl.load(residual_at + at, mask=at < cols, other=0.0).to(tl.float32)
        centred = tl.where(at < cols, total - mean, 0.0)
        squares += centred * centred
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)

    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        x = tl.load(x_at + at, mask=inside, other=0.0).to(tl.float32)
        total = x + tl.load(residual_at + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32)
        out = (total - mean) * scale * weight + bias
        tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=inside)


def add_layer_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Norm and sum of x and residual, float16[rows, cols] with any row strides."""
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    total = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    add_layer_norm_kernel[(rows,)](
        x,
        residual,
        weight,
        bias,
        out,
        total,
        x.stride(0),
        residual.stride(0),
        cols,
        eps,
        BLOCK=1024,
    )
    return out, total
