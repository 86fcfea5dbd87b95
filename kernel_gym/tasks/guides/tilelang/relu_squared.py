"""Squared ReLU in TileLang: a workgroup makes a strip of one row."""

import tilelang
import tilelang.language as T
import torch

BLOCK = 1024


@tilelang.jit
def relu_squared_kernel():
    """Builds the kernel for all shapes and row strides."""
    rows, cols, of_x = T.dynamic("rows"), T.dynamic("cols"), T.dynamic("of_x")

    @T.prim_func
    def main(
        x: T.StridedTensor((rows, cols), (of_x, 1), "bfloat16"),
        out: T.Tensor((rows, cols), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(cols, BLOCK), rows, threads=256) as (strip, row):
            for i in T.Parallel(BLOCK):
                col = strip * BLOCK + i
                if col < cols:
                    value = T.cast(x[row, col], "float32")
                    out[row, col] = T.cast(T.max(value, 0.0) * T.max(value, 0.0), "bfloat16")

    return main


def relu_squared(x: torch.Tensor) -> torch.Tensor:
    """max(x, 0)^2 of x with any row stride."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    relu_squared_kernel()(x, out)
    return out
