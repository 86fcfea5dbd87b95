"""GELU by its tanh form in TileLang: a workgroup makes a strip of one row."""

import tilelang
import tilelang.language as T
import torch

BLOCK = 1024


@tilelang.jit
def gelu_kernel():
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
                    out[row, col] = T.cast(
                        value
                        / (
                            1.0
                            + T.exp(
                                -1.5957691216057308 * (value + 0.044715 * value * value * value)
                            )
                        ),
                        "bfloat16",
                    )

    return main


def gelu(x: torch.Tensor) -> torch.Tensor:
    """GELU of bfloat16[rows, cols] with any row stride; (1 + tanh(y)) / 2 is sigmoid(2 y)."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    gelu_kernel()(x, out)
    return out
