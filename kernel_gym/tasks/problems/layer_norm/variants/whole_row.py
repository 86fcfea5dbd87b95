"""One program a row, the row in registers; a very long row is read three times."""

import torch
import triton
import triton.language as tl

WARPS = 8  # of 4 8 16


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, x_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, x - tl.sum(x, axis=0) / cols, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / cols + eps)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32)
    out = centred * scale * weight + bias
    tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=inside)


@triton.jit
def in_pieces(x_ptr, weight_ptr, bias_ptr, out_ptr, x_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / cols
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0).to(tl.float32)
        centred = tl.where(at < cols, x - mean, 0.0)
        squares += centred * centred
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < cols
        x = tl.load(x_ptr + row * x_stride + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32)
        out = (x - mean) * scale * weight + bias
        tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=inside)


def layer_norm(x, weight, bias, eps):
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    call = (x, weight, bias, out, x.stride(0), cols, eps)
    if cols > 32768:  # more would not fit into 64 KiB of LDS
        in_pieces[(rows,)](*call, BLOCK=4096, num_warps=WARPS)
    else:
        kernel[(rows,)](*call, BLOCK=triton.next_power_of_2(cols), num_warps=WARPS)
    return out
