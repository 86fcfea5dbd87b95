"""Squared ReLU in FlyDSL: a thread makes one element."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

BLOCK = 256


@flyc.kernel
def relu_squared_kernel(x: fx.Tensor, out: fx.Tensor):
    """Makes BLOCK neighbours of one row."""
    _, cols = out.shape.unpack()
    row, col = fx.block_idx.x, fx.block_idx.y * BLOCK + fx.thread_idx.x
    if col < cols:
        value = fx.max(x[row, col].to(fx.Float32), 0.0)
        out[row, col] = (value * value).to(fx.BFloat16)


@flyc.jit
def launch(x: fx.Tensor, out: fx.Tensor):
    """Launches a strip of BLOCK columns for each workgroup."""
    rows, cols = out.shape.unpack()
    relu_squared_kernel(x, out).launch(grid=(rows, fx.ceildiv(cols, BLOCK)), block=(BLOCK,))


def relu_squared(x: torch.Tensor) -> torch.Tensor:
    """max(x, 0)^2 of bfloat16[rows, cols] with any row stride."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    launch(x, out)
    return out
