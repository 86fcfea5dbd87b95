"""Schedules of gelu: block, warps, and how many blocks of a row one program handles."""

from kernel_gym.tasks.tuning import Tuning

_KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr, CHUNKS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * BLOCK * CHUNKS + tl.arange(0, BLOCK)
    for chunk in tl.static_range(CHUNKS):
        at = first + chunk * BLOCK
        x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0).to(tl.float32)
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        tanh = 1.0 - 2.0 / (tl.exp(2.0 * inner) + 1.0)
        out = 0.5 * x * (1.0 + tanh)
        tl.store(out_ptr + row * cols + at, out.to(tl.bfloat16), mask=at < cols)


def gelu(x):
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    grid = (rows, triton.cdiv(cols, $BLOCK * $CHUNKS))
    gelu_kernel[grid](
        x, out, x.stride(0), cols, BLOCK=$BLOCK, CHUNKS=$CHUNKS, num_warps=$WARPS
    )
    return out
"""

TUNING = Tuning(
    space={"BLOCK": (64, 256, 512, 1024, 4096), "WARPS": (1, 2, 4, 8), "CHUNKS": (1, 2, 4)},
    template=_KERNEL.lstrip(),
)
