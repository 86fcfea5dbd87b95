"""Softmax in TileLang: a workgroup makes one row, in three passes over it."""

import tilelang
import tilelang.language as T
import torch

BLOCK = 512


@tilelang.jit
def softmax_kernel():
    """Builds the kernel for all shapes and row strides."""
    rows, cols, of_x = T.dynamic("rows"), T.dynamic("cols"), T.dynamic("of_x")

    @T.prim_func
    def main(
        x: T.StridedTensor((rows, cols), (of_x, 1), "float16"),
        out: T.Tensor((rows, cols), "float16"),
    ):
        with T.Kernel(rows, threads=128) as row:
            part = T.alloc_fragment((1, BLOCK), "float32")
            largest = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.fill(largest, -T.infinity("float32"))
            T.fill(total, 0.0)
            for k in T.serial(T.ceildiv(cols, BLOCK)):
                for _, i in T.Parallel(1, BLOCK):
                    inside = k * BLOCK + i < cols
                    value = T.cast(x[row, k * BLOCK + i], "float32")
                    part[0, i] = T.if_then_else(inside, value, -T.infinity("float32"))
                T.reduce_max(part, largest, dim=1, clear=False)
            for k in T.serial(T.ceildiv(cols, BLOCK)):
                for _, i in T.Parallel(1, BLOCK):
                    inside = k * BLOCK + i < cols
                    value = T.cast(x[row, k * BLOCK + i], "float32")
                    part[0, i] = T.if_then_else(inside, T.exp(value - largest[0]), 0.0)
                T.reduce_sum(part, total, dim=1, clear=False)
            for k in T.serial(T.ceildiv(cols, BLOCK)):
                for i in T.Parallel(BLOCK):
                    if k * BLOCK + i < cols:
                        value = T.cast(x[row, k * BLOCK + i], "float32")
                        value = T.exp(value - largest[0]) / total[0]
                        out[row, k * BLOCK + i] = T.cast(value, "float16")

    return main


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis of x, float16[rows, cols] with any row stride."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    softmax_kernel()(x, out)
    return out
