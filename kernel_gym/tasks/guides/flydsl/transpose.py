"""Transposed matrix in FlyDSL: a workgroup moves one tile through shared memory."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

TILE, HEIGHT = 32, 8


@fx.struct
class Tile:
    """A tile whose rows are one element longer, so that its columns lie in different banks."""

    elements: fx.Array[fx.Float32, TILE * (TILE + 1), 16]


@flyc.kernel
def transpose_kernel(x: fx.Tensor, out: fx.Tensor):
    """Moves one tile of TILE by TILE elements."""
    tile = fx.SharedAllocator().allocate(Tile).peek()
    tile = tile.elements.view(fx.make_layout((TILE, TILE), (TILE + 1, 1)))
    rows, cols = x.shape.unpack()
    across, down = fx.thread_idx.x, fx.thread_idx.y

    for start in fx.range_constexpr(0, TILE, HEIGHT):
        row, col = fx.block_idx.y * TILE + down + start, fx.block_idx.x * TILE + across
        if (row < rows) & (col < cols):
            tile[down + start, across] = x[row, col]
    fx.barrier()
    for start in fx.range_constexpr(0, TILE, HEIGHT):
        row, col = fx.block_idx.y * TILE + across, fx.block_idx.x * TILE + down + start
        if (row < rows) & (col < cols):
            out[col, row] = tile[across, down + start]


@flyc.jit
def launch(x: fx.Tensor, out: fx.Tensor):
    """Launches a workgroup for each tile."""
    rows, cols = x.shape.unpack()
    grid = (fx.ceildiv(cols, TILE), fx.ceildiv(rows, TILE))
    transpose_kernel(x, out).launch(grid=grid, block=(TILE, HEIGHT))


def transpose(x: torch.Tensor) -> torch.Tensor:
    """The transpose of x, float32[rows, cols] with any row stride, as a contiguous matrix."""
    out = torch.empty((x.shape[1], x.shape[0]), dtype=x.dtype, device=x.device)
    launch(x, out)
    return out
