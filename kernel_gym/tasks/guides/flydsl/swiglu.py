"""SwiGLU in FlyDSL: a thread makes one element."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

BLOCK = 256


@flyc.kernel
def swiglu_kernel(x: fx.Tensor, out: fx.Tensor):
    """Makes BLOCK neighbours of one row."""
    _, cols = out.shape.unpack()
    row, col = fx.block_idx.x, fx.block_idx.y * BLOCK + fx.thread_idx.x
    if col < cols:
        gate = x[row, col].to(fx.Float32)
        up = x[row, col + cols].to(fx.Float32)
        out[row, col] = (gate / (1.0 + fx.math.exp(-gate)) * up).to(fx.BFloat16)


@flyc.jit
def launch(x: fx.Tensor, out: fx.Tensor):
    """Launches a strip of BLOCK columns for each workgroup."""
    rows, cols = out.shape.unpack()
    swiglu_kernel(x, out).launch(grid=(rows, fx.ceildiv(cols, BLOCK)), block=(BLOCK,))


def swiglu(x: torch.Tensor) -> torch.Tensor:
    """silu(x[:, :cols]) * x[:, cols:] of bfloat16[rows, 2 * cols] with any row stride."""
    out = torch.empty((x.shape[0], x.shape[1] // 2), dtype=x.dtype, device=x.device)
    launch(x, out)
    return out
