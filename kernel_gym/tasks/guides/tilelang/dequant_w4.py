"""Unpacks a 4-bit weight in TileLang: one column a lane."""

import tilelang
import tilelang.language as T
import torch

BLOCK, GROUP = 512, 128


@tilelang.jit
def dequant_kernel():
    """Builds the kernel for all shapes and row strides."""
    rows, cols, words, groups = (T.dynamic(name) for name in ("rows", "cols", "words", "groups"))
    of_codes, of_scales, of_zeros = (T.dynamic(name) for name in ("of_c", "of_s", "of_z"))

    @T.prim_func
    def main(
        codes: T.StridedTensor((rows, words), (of_codes, 1), "int32"),
        scales: T.StridedTensor((groups, cols), (of_scales, 1), "float16"),
        zeros: T.StridedTensor((groups, words), (of_zeros, 1), "int32"),
        out: T.Tensor((rows, cols), "float16"),
    ):
        with T.Kernel(T.ceildiv(cols, BLOCK), rows, threads=BLOCK) as (strip, row):
            for i in T.Parallel(BLOCK):
                col = strip * BLOCK + i
                shift = 4 * (col % 8 // 2 + col % 2 * 4)  # where the nibble of a column is
                if col < cols:
                    code = (codes[row, col // 8] >> shift) & 15
                    zero = (zeros[row // GROUP, col // 8] >> shift) & 15
                    scale = T.cast(scales[row // GROUP, col], "float32")
                    out[row, col] = T.cast(scale * T.cast(code - zero, "float32"), "float16")

    return main


def dequant_w4(qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor) -> torch.Tensor:
    """scales * (codes - zeros) of int32[rows, cols / 8] words, scales float16[rows / 128, cols]."""
    shape = (qweight.shape[0], scales.shape[1])
    out = torch.empty(shape, dtype=scales.dtype, device=scales.device)
    dequant_kernel()(qweight, scales, qzeros, out)
    return out
