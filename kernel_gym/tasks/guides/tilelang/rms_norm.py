"""RMS norm in TileLang: a workgroup makes one row, in two passes over it."""

import tilelang
import tilelang.language as T
import torch

BLOCK = 512


@tilelang.jit
def rms_norm_kernel():
    """Builds the kernel for all shapes and row strides."""
    rows, cols, of_x = T.dynamic("rows"), T.dynamic("cols"), T.dynamic("of_x")

    @T.prim_func
    def main(
        x: T.StridedTensor((rows, cols), (of_x, 1), "float16"),
        weight: T.Tensor((cols,), "float16"),
        out: T.Tensor((rows, cols), "float16"),
        eps: T.float32,
    ):
        with T.Kernel(rows, threads=128) as row:
            part = T.alloc_fragment((1, BLOCK), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.fill(total, 0.0)
            for k in T.serial(T.ceildiv(cols, BLOCK)):
                for _, i in T.Parallel(1, BLOCK):
                    value = T.cast(x[row, k * BLOCK + i], "float32")
                    part[0, i] = T.if_then_else(k * BLOCK + i < cols, value * value, 0.0)
                T.reduce_sum(part, total, dim=1, clear=False)
            for k in T.serial(T.ceildiv(cols, BLOCK)):
                for i in T.Parallel(BLOCK):
                    if k * BLOCK + i < cols:
                        value = T.cast(x[row, k * BLOCK + i], "float32")
                        value = value * T.rsqrt(total[0] / T.cast(cols, "float32") + eps)
                        value = value * T.cast(weight[k * BLOCK + i], "float32")
                        out[row, k * BLOCK + i] = T.cast(value, "float16")

    return main


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """RMS norm of x, float16[rows, cols] with any row stride, by weight float16[cols]."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rms_norm_kernel()(x, weight, out, eps)
    return out
