"""Schedules of layer_norm: block and warps; the row as a whole in registers, or read in blocks."""

from kernel_gym.tasks.tuning import Tuning

_KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def whole_row(x_ptr, weight_ptr, bias_ptr, out_ptr, x_stride, cols, eps, BLOCK: tl.constexpr):
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
def in_blocks(x_ptr, weight_ptr, bias_ptr, out_ptr, x_stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        total += tl.load(x_row + at, mask=at < cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / cols
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_row + at, mask=at < cols, other=0.0).to(tl.float32)
        centred = tl.where(at < cols, x - mean, 0.0)
        squares += centred * centred
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        at = start + lane
        inside = at < cols
        x = tl.load(x_row + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32)
        out = (x - mean) * scale * weight + bias
        tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=inside)


def layer_norm(x, weight, bias, eps):
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    call = (x, weight, bias, out, x.stride(0), cols, eps)
    if $WHOLE and cols <= 16384:
        block = triton.next_power_of_2(cols)
        whole_row[(rows,)](*call, BLOCK=block, num_warps=$WARPS)
    else:
        in_blocks[(rows,)](*call, BLOCK=$BLOCK, num_warps=$WARPS)
    return out
"""

TUNING = Tuning(
    space={"BLOCK": (128, 256, 512, 1024, 2048, 4096), "WARPS": (1, 2, 4, 8), "WHOLE": (0, 1)},
    template=_KERNEL.lstrip(),
)
