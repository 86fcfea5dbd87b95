"""GEGLU in FlyDSL: a thread makes one element."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

BLOCK = 256


@flyc.kernel
def geglu_kernel(x: fx.Tensor, out: fx.Tensor):
    """Makes BLOCK neighbours of one row."""
    _, cols = out.shape.unpack()
    row, col = fx.block_idx.x, fx.block_idx.y * BLOCK + fx.thread_idx.x
    if col < cols:
        value = x[row, col].to(fx.Float32)
        gate = x[row, col + cols].to(fx.Float32)
        out[row, col] = (0.5 * gate * (1.0 + fx.math.erf(gate * 0.7071067811865476)) * value).to(
            fx.BFloat16
        )


@flyc.jit
def launch(x: fx.Tensor, out: fx.Tensor):
    """Launches a strip of BLOCK columns for each workgroup."""
    rows, cols = out.shape.unpack()
    geglu_kernel(x, out).launch(grid=(rows, fx.ceildiv(cols, BLOCK)), block=(BLOCK,))


def geglu(x: torch.Tensor) -> torch.Tensor:
    """x[:, :cols] * gelu(x[:, cols:]) of bfloat16[rows, 2 * cols] with any row stride."""
    out = torch.empty((x.shape[0], x.shape[1] // 2), dtype=x.dtype, device=x.device)
    launch(x, out)
    return out
