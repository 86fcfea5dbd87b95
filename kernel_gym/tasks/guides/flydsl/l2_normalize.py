"""Rows of length one in FlyDSL: a workgroup makes one row, in two passes over it."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

BLOCK = 256


@flyc.kernel
def l2_normalize_kernel(x: fx.Tensor, out: fx.Tensor, eps: fx.Float32):
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
    length = fx.math.sqrt(squares + eps)

    for col in range(lane, cols, BLOCK):
        out[row, col] = (x[row, col].to(fx.Float32) / length).to(fx.Float16)


@flyc.jit
def launch(x: fx.Tensor, out: fx.Tensor, eps: fx.Float32):
    """Launches a workgroup for each row."""
    rows, _ = x.shape.unpack()
    l2_normalize_kernel(x, out, eps).launch(grid=(rows,), block=(BLOCK,))


def l2_normalize(x: torch.Tensor, eps: float) -> torch.Tensor:
    """x / sqrt(|x|^2 + eps) by rows, x float16[rows, cols] with any row stride."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    launch(x, out, eps)
    return out
