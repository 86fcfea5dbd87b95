"""Step 0: a correct matrix product in Gluon for gfx950, with all layouts written out.

Tiles go from memory to registers, and through LDS into the layout of the matrix instructions.
"""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

TILE, DEPTH = gl.constexpr(256), gl.constexpr(64)
MMA = gl.constexpr(
    gl.amd.AMDMFMALayout(version=4, instr_shape=[16, 16, 32], transposed=True, warps_per_cta=[2, 2])
)
X_OPERAND = gl.constexpr(gl.DotOperandLayout(0, MMA.value, k_width=8))
W_OPERAND = gl.constexpr(gl.DotOperandLayout(1, MMA.value, k_width=8))
X_LOADED = gl.constexpr(gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0]))
W_LOADED = gl.constexpr(gl.BlockedLayout([8, 1], [8, 8], [1, 4], [0, 1]))


@gluon.jit
def matmul_nt_kernel(x_ptr, w_ptr, out_ptr, m, n, k, x_stride, w_stride):
    """Computes one TILE x TILE tile."""
    across = gl.cdiv(n, TILE)
    down = gl.program_id(0) // across * TILE
    right = gl.program_id(0) % across * TILE
    x_rows = gl.minimum(down + gl.arange(0, TILE, gl.SliceLayout(1, X_LOADED)), m - 1)[:, None]
    w_rows = gl.minimum(right + gl.arange(0, TILE, gl.SliceLayout(0, W_LOADED)), n - 1)[None, :]
    x_depth = gl.arange(0, DEPTH, gl.SliceLayout(0, X_LOADED))[None, :]
    w_depth = gl.arange(0, DEPTH, gl.SliceLayout(1, W_LOADED))[:, None]
    x_at = x_ptr + x_rows * x_stride + x_depth
    w_at = w_ptr + w_rows * w_stride + w_depth
    total = gl.zeros((TILE, TILE), gl.float32, MMA)
    for start in range(0, k, DEPTH):
        x = gl.load(x_at + start, mask=x_depth < k - start, other=0.0)
        w = gl.load(w_at + start, mask=w_depth < k - start, other=0.0)
        x = gl.convert_layout(x, X_OPERAND)
        w = gl.convert_layout(w, W_OPERAND)
        total = gl.amd.cdna3.mfma(x, w, total)
    rows = down + gl.arange(0, TILE, gl.SliceLayout(1, MMA))[:, None]
    cols = right + gl.arange(0, TILE, gl.SliceLayout(0, MMA))[None, :]
    gl.store(out_ptr + rows * n + cols, total.to(gl.float16), mask=(rows < m) & (cols < n))


def aligned(matrix: torch.Tensor) -> torch.Tensor:
    """A matrix whose rows have 16-byte pieces: itself, or a copy that is filled with zeros."""
    m, k = matrix.shape
    if k % 16 == 0 and matrix.stride(0) % 16 == 0 and matrix.data_ptr() % 16 == 0:
        return matrix
    copy = matrix.new_zeros((m, triton.cdiv(k, 16) * 16))
    copy[:, :k].copy_(matrix)
    return copy


def matmul_nt(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x @ weight.T of float16[m, k] and float16[n, k] with any row strides."""
    m, n = x.shape[0], weight.shape[0]
    x, weight = aligned(x), aligned(weight)
    out = x.new_empty((m, n))
    grid = (triton.cdiv(m, TILE) * triton.cdiv(n, TILE),)
    strides = x.stride(0), weight.stride(0)
    matmul_nt_kernel[grid](x, weight, out, m, n, x.shape[1], *strides, num_warps=4)
    return out
