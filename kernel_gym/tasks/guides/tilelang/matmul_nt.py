"""Product with a transposed matrix in TileLang, with matrix instructions."""

import tilelang
import tilelang.language as T
import torch

TILE, STEP = 64, 32


@tilelang.jit
def matmul_nt_kernel():
    """Builds the kernel for all shapes and row strides."""
    m, n, k = T.dynamic("m"), T.dynamic("n"), T.dynamic("k")
    of_x, of_weight = T.dynamic("of_x"), T.dynamic("of_weight")

    @T.prim_func
    def main(
        x: T.StridedTensor((m, k), (of_x, 1), "float16"),
        weight: T.StridedTensor((n, k), (of_weight, 1), "float16"),
        out: T.Tensor((m, n), "float16"),
    ):
        with T.Kernel(T.ceildiv(n, TILE), T.ceildiv(m, TILE), threads=128) as (across, down):
            of_a = T.alloc_shared((TILE, STEP), "float16")
            of_b = T.alloc_shared((TILE, STEP), "float16")
            total = T.alloc_fragment((TILE, TILE), "float32")
            T.clear(total)
            for step in T.Pipelined(T.ceildiv(k, STEP), num_stages=1):
                T.copy(x[down * TILE, step * STEP], of_a)
                T.copy(weight[across * TILE, step * STEP], of_b)
                T.gemm(of_a, of_b, total, transpose_B=True)
            T.copy(total, out[down * TILE, across * TILE])

    return main


def matmul_nt(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x @ weight.T of float16[m, k] and float16[n, k] with any row strides."""
    out = torch.empty((x.shape[0], weight.shape[0]), dtype=x.dtype, device=x.device)
    matmul_nt_kernel()(x, weight, out)
    return out
