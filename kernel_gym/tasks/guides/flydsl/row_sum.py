"""Sums of rows in FlyDSL: a workgroup adds one row."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

BLOCK = 256


@flyc.kernel
def row_sum_kernel(x: fx.Tensor, out: fx.Tensor):
    """Adds one row."""
    reduce = fx.coop.BlockReduce[fx.Float32, BLOCK]
    storage = fx.SharedAllocator().allocate(reduce.SharedStorage).peek()
    _, cols = x.shape.unpack()
    row, lane = fx.block_idx.x, fx.thread_idx.x

    total = fx.Float32(0.0)
    for col in range(lane, cols, BLOCK):
        total = total + x[row, col].to(fx.Float32)
    total = reduce(total, fx.ReductionOp.ADD, storage=storage)
    if lane == 0:
        out[row] = total.to(fx.BFloat16)


@flyc.jit
def launch(x: fx.Tensor, out: fx.Tensor):
    """Launches a workgroup for each row."""
    rows, _ = x.shape.unpack()
    row_sum_kernel(x, out).launch(grid=(rows,), block=(BLOCK,))


def row_sum(x: torch.Tensor) -> torch.Tensor:
    """Sums over the last axis of x, bfloat16[rows, cols] with any row stride."""
    out = torch.empty(x.shape[:1], dtype=x.dtype, device=x.device)
    launch(x, out)
    return out
