"""RMS norm in FlyDSL: a workgroup makes one row, in two passes over it."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

BLOCK = 256


@flyc.kernel
def rms_norm_kernel(x: fx.Tensor, weight: fx.Tensor, out: fx.Tensor, eps: fx.Float32):
    """Normalises one row."""
    reduce = fx.coop.BlockReduce[fx.Float32, BLOCK]
    storage = fx.SharedAllocator().allocate(reduce.SharedStorage).peek()
    _, cols = x.shape.unpack()
    row, lane = fx.block_idx.x, fx.thread_idx.x

    squares = fx.Float32(0.0)
    for col in range(lane, cols, BLOCK):
        value = x[row, col].to(fx.Float32)
        squares = squares + value * value
    squares = reduce(squares, fx.ReductionOp.ADD, storage=storage)
    scale = fx.math.rsqrt(squares / cols.to(fx.Float32) + eps)

    for col in range(lane, cols, BLOCK):
        value = x[row, col].to(fx.Float32) * scale * weight[col].to(fx.Float32)
        out[row, col] = value.to(fx.Float16)


@flyc.jit
def launch(x: fx.Tensor, weight: fx.Tensor, out: fx.Tensor, eps: fx.Float32):
    """Launches a workgroup for each row."""
    rows, _ = x.shape.unpack()
    rms_norm_kernel(x, weight, out, eps).launch(grid=(rows,), block=(BLOCK,))


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """RMS norm of x, float16[rows, cols] with any row stride, by weight float16[cols]."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    launch(x, weight, out, eps)
    return out
