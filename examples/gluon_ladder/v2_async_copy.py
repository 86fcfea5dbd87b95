"""Step 2: tiles are copied from memory to LDS directly, not through registers.

This saves the registers of two tiles and all writes of LDS.
"""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd.cdna4 import async_copy

TILE, DEPTH = gl.constexpr(256), gl.constexpr(64)
MMA = gl.constexpr(
    gl.amd.AMDMFMALayout(version=4, instr_shape=[16, 16, 32], transposed=True, warps_per_cta=[2, 2])
)
X_OPERAND = gl.constexpr(gl.DotOperandLayout(0, MMA.value, k_width=8))
W_OPERAND = gl.constexpr(gl.DotOperandLayout(1, MMA.value, k_width=8))
X_LOADED = gl.constexpr(gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0]))
W_LOADED = gl.constexpr(gl.BlockedLayout([8, 1], [8, 8], [1, 4], [0, 1]))
X_SHARED = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, order=[1, 0]))
W_SHARED = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, order=[0, 1]))


@gluon.jit
def fetch(tile, ptr, at, depth, left):
    """Starts to copy a tile from memory to LDS; what lies beyond the last column becomes zero."""
    async_copy.buffer_load_to_shared(tile, ptr, at, depth < left)


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
    x_at = x_rows * x_stride + x_depth
    w_at = w_rows * w_stride + w_depth
    x_tile = gl.allocate_shared_memory(gl.float16, [TILE, DEPTH], X_SHARED)
    w_tile = gl.allocate_shared_memory(gl.float16, [DEPTH, TILE], W_SHARED)
    total = gl.zeros((TILE, TILE), gl.float32, MMA)
    for start in range(0, k, DEPTH):
        fetch(x_tile, x_ptr, x_at + start, x_depth, k - start)
        fetch(w_tile, w_ptr, w_at + start, w_depth, k - start)
        async_copy.commit_group()
        async_copy.wait_group(0)
        x, w = x_tile.load(X_OPERAND), w_tile.load(W_OPERAND)
        total = gl.amd.cdna3.mfma(x, w, total)
    rows = gl.arange(0, TILE, gl.SliceLayout(1, MMA))[:, None]
    cols = gl.arange(0, TILE, gl.SliceLayout(0, MMA))[None, :]
    gl.amd.cdna3.buffer_store(
        total.to(gl.float16),
        out_ptr + down * n + right,
        rows * n + cols,
        mask=(rows < m - down) & (cols < n - right),
    )


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
