"""Softmax in FlyDSL: a workgroup makes one row, in three passes over it."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

BLOCK = 256


@flyc.kernel
def softmax_kernel(x: fx.Tensor, out: fx.Tensor):
    """Normalises one row."""
    reduce = fx.coop.BlockReduce[fx.Float32, BLOCK]
    storage = fx.SharedAllocator().allocate(reduce.SharedStorage).peek()
    _, cols = x.shape.unpack()
    row, lane = fx.block_idx.x, fx.thread_idx.x

    largest = fx.Float32(float("-inf"))
    for col in range(lane, cols, BLOCK):
        largest = fx.max(largest, x[row, col].to(fx.Float32))
    largest = reduce(largest, fx.ReductionOp.MAX, storage=storage)
    fx.barrier()

    total = fx.Float32(0.0)
    for col in range(lane, cols, BLOCK):
        total = total + fx.math.exp(x[row, col].to(fx.Float32) - largest)
    total = reduce(total, fx.ReductionOp.ADD, storage=storage)

    for col in range(lane, cols, BLOCK):
        e = fx.math.exp(x[row, col].to(fx.Float32) - largest)
        out[row, col] = (e / total).to(fx.Float16)


@flyc.jit
def launch(x: fx.Tensor, out: fx.Tensor):
    """Launches a workgroup for each row."""
    rows, _ = x.shape.unpack()
    softmax_kernel(x, out).launch(grid=(rows,), block=(BLOCK,))


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis of x, float16[rows, cols] with any row stride."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    launch(x, out)
    return out
