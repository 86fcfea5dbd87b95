"""Layer norm in FlyDSL: a workgroup makes one row, in three passes over it."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

BLOCK = 256


@flyc.kernel
def layer_norm_kernel(
    x: fx.Tensor, weight: fx.Tensor, bias: fx.Tensor, out: fx.Tensor, eps: fx.Float32
):
    """Normalises one row."""
    reduce = fx.coop.BlockReduce[fx.Float32, BLOCK]
    storage = fx.SharedAllocator().allocate(reduce.SharedStorage).peek()
    _, cols = x.shape.unpack()
    row, lane = fx.block_idx.x, fx.thread_idx.x

    total = fx.Float32(0.0)
    for col in range(lane, cols, BLOCK):
        total = total + x[row, col].to(fx.Float32)
    mean = reduce(total, fx.ReductionOp.ADD, storage=storage) / cols.to(fx.Float32)
    fx.barrier()

    squares = fx.Float32(0.0)
    for col in range(lane, cols, BLOCK):
        value = x[row, col].to(fx.Float32) - mean
        squares = squares + value * value
    variance = reduce(squares, fx.ReductionOp.ADD, storage=storage) / cols.to(fx.Float32)
    scale = fx.math.rsqrt(variance + eps)

    for col in range(lane, cols, BLOCK):
        value = (x[row, col].to(fx.Float32) - mean) * scale * weight[col].to(fx.Float32)
        out[row, col] = (value + bias[col].to(fx.Float32)).to(fx.Float16)


@flyc.jit
def launch(x: fx.Tensor, weight: fx.Tensor, bias: fx.Tensor, out: fx.Tensor, eps: fx.Float32):
    """Launches a workgroup for each row."""
    rows, _ = x.shape.unpack()
    layer_norm_kernel(x, weight, bias, out, eps).launch(grid=(rows,), block=(BLOCK,))


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Layer norm of x, float16[rows, cols] with any row stride; weight and bias float16[cols]."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    launch(x, weight, bias, out, eps)
    return out
