"""Row sums in TileLang: a workgroup adds one row up."""

import tilelang
import tilelang.language as T
import torch

BLOCK = 512


@tilelang.jit
def row_sum_kernel():
    """Builds the kernel for all shapes and row strides."""
    rows, cols, of_x = T.dynamic("rows"), T.dynamic("cols"), T.dynamic("of_x")

    @T.prim_func
    def main(
        x: T.StridedTensor((rows, cols), (of_x, 1), "bfloat16"),
        out: T.Tensor((rows,), "bfloat16"),
    ):
        with T.Kernel(rows, threads=128) as row:
            part = T.alloc_fragment((1, BLOCK), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.fill(total, 0.0)
            for k in T.serial(T.ceildiv(cols, BLOCK)):
                for _, i in T.Parallel(1, BLOCK):
                    value = T.cast(x[row, k * BLOCK + i], "float32")
                    part[0, i] = T.if_then_else(k * BLOCK + i < cols, value, 0.0)
                T.reduce_sum(part, total, dim=1, clear=False)
            out[row] = T.cast(total[0], "bfloat16")

    return main


def row_sum(x: torch.Tensor) -> torch.Tensor:
    """Sums over the last axis of x, bfloat16[rows, cols] with any row stride."""
    out = torch.empty(x.shape[:1], dtype=x.dtype, device=x.device)
    row_sum_kernel()(x, out)
    return out
