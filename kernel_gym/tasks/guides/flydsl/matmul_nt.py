"""Product with a transposed matrix in FlyDSL: a wave makes a tile with matrix instructions."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

TILE, STEP = 16, 16


def four(matrix: fx.Tensor, line: fx.Int32, start: fx.Int32) -> fx.Vector:
    """Four neighbours of one line; zeros behind the end of the matrix."""
    lines, length = matrix.shape.unpack()
    values = []
    for at in [start + i for i in fx.range_constexpr(4)]:
        value = matrix[fx.min(line, lines - 1), fx.min(at, length - 1)]
        values.append(((line < lines) & (at < length)).select(value, fx.Float16(0.0)))
    return fx.Vector.from_elements(values, fx.Float16)


@flyc.kernel
def matmul_nt_kernel(x: fx.Tensor, weight: fx.Tensor, out: fx.Tensor):
    """Makes one tile of TILE by TILE elements. A lane holds four elements of each operand."""
    _, inner = x.shape.unpack()
    rows, cols = out.shape.unpack()
    line, part = fx.thread_idx.x % TILE, fx.thread_idx.x // TILE * 4
    row, col = fx.block_idx.x * TILE, fx.block_idx.y * TILE + line

    total = fx.Vector.filled(4, 0.0, fx.Float32)
    for start in range(0, inner, STEP):
        a, b = four(x, row + line, start + part), four(weight, col, start + part)
        operands = [a.ir_value(), b.ir_value(), total.ir_value()]
        total = fx.Vector(fx.rocdl.mfma_f32_16x16x16f16(fx.T.f32x4, operands))

    for i in fx.range_constexpr(4):
        if (row + part + i < rows) & (col < cols):
            out[row + part + i, col] = total[i].to(fx.Float16)


@flyc.jit
def launch(x: fx.Tensor, weight: fx.Tensor, out: fx.Tensor):
    """Launches a wave for each tile."""
    rows, cols = out.shape.unpack()
    grid = (fx.ceildiv(rows, TILE), fx.ceildiv(cols, TILE))
    matmul_nt_kernel(x, weight, out).launch(grid=grid, block=(64,))


def matmul_nt(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x @ weight.T of float16[m, k] and float16[n, k] with any row strides."""
    out = torch.empty((x.shape[0], weight.shape[0]), dtype=x.dtype, device=x.device)
    launch(x, weight, out)
    return out
