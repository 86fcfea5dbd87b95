"""Transposed matrix in TileLang: a workgroup moves one tile through shared memory."""

import tilelang
import tilelang.language as T
import torch

TILE = 32


@tilelang.jit
def transpose_kernel():
    """Builds the kernel for all shapes and row strides."""
    rows, cols, of_x = T.dynamic("rows"), T.dynamic("cols"), T.dynamic("of_x")

    @T.prim_func
    def main(
        x: T.StridedTensor((rows, cols), (of_x, 1), "float32"),
        out: T.Tensor((cols, rows), "float32"),
    ):
        grid = (T.ceildiv(cols, TILE), T.ceildiv(rows, TILE))
        with T.Kernel(*grid, threads=256) as (across, down):
            tile = T.alloc_shared((TILE, TILE + 1), "float32")
            for i, j in T.Parallel(TILE, TILE):
                if (down * TILE + i < rows) & (across * TILE + j < cols):
                    tile[i, j] = x[down * TILE + i, across * TILE + j]
            for i, j in T.Parallel(TILE, TILE):
                if (across * TILE + i < cols) & (down * TILE + j < rows):
                    out[across * TILE + i, down * TILE + j] = tile[j, i]

    return main


def transpose(x: torch.Tensor) -> torch.Tensor:
    """The transpose of x, float32[rows, cols] with any row stride, as a contiguous matrix."""
    out = torch.empty((x.shape[1], x.shape[0]), dtype=x.dtype, device=x.device)
    transpose_kernel()(x, out)
    return out
