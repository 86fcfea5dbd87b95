"""Step 7: the tile has a left and a right half, which are multiplied one after the other.

Operands of one half are in registers at a time, so accumulators and operands fit.
"""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd.cdna4 import async_copy

TILE, HALF, DEPTH = gl.constexpr(256), gl.constexpr(128), gl.constexpr(64)
MMA = gl.constexpr(
    gl.amd.AMDMFMALayout(version=4, instr_shape=[16, 16, 32], transposed=True, warps_per_cta=[2, 2])
)
X_OPERAND = gl.constexpr(gl.DotOperandLayout(0, MMA.value, k_width=8))
W_OPERAND = gl.constexpr(gl.DotOperandLayout(1, MMA.value, k_width=8))


def padded(operand, shape):
    """An LDS layout without conflicts, and the layout of registers that is written there in order.

    One copy instruction writes 16 bytes of each lane to consecutive places, so the bits of an LDS
    address are, from below, those of the lane's elements, of the lane, of the wave, and the rest.
    """
    shared = gl.amd.cdna4.compute_efficient_padded_shared_layout(operand, shape, gl.float16)
    bits = [list(bit) for bit in shared.offset_bases]
    loaded = gl.DistributedLinearLayout(bits[:3] + bits[11:], bits[3:9], bits[9:11], [], shape)
    return gl.constexpr(shared), gl.constexpr(loaded)


X_SHARED, X_LOADED = padded(X_OPERAND.value, [TILE.value, DEPTH.value])
W_SHARED, W_LOADED = padded(W_OPERAND.value, [DEPTH.value, HALF.value])


@gluon.jit
def fetch(tile, ptr, at, depth, left):
    """Starts to copy a tile from memory to LDS; what lies beyond the last column becomes zero."""
    async_copy.buffer_load_to_shared(tile, ptr, at, depth < left)
    async_copy.commit_group()


@gluon.jit
def store(total, out_ptr, rows_left, cols_left, n):
    """Writes a part of the output; rows and columns that are not there are left out."""
    rows = gl.arange(0, total.shape[0], gl.SliceLayout(1, MMA))[:, None]
    cols = gl.arange(0, total.shape[1], gl.SliceLayout(0, MMA))[None, :]
    inside = (rows < rows_left) & (cols < cols_left)
    gl.amd.cdna3.buffer_store(total.to(gl.float16), out_ptr, rows * n + cols, mask=inside)


@gluon.jit
def matmul_nt_kernel(x_ptr, w_ptr, out_ptr, m, n, k, x_stride, w_stride):
    """Computes one TILE x TILE tile."""
    across = gl.cdiv(n, TILE)
    down = gl.program_id(0) // across * TILE
    right = gl.program_id(0) % across * TILE
    x_rows = gl.minimum(down + gl.arange(0, TILE, gl.SliceLayout(1, X_LOADED)), m - 1)[:, None]
    w_rows = right + gl.arange(0, HALF, gl.SliceLayout(0, W_LOADED))[None, :]
    x_depth = gl.arange(0, DEPTH, gl.SliceLayout(0, X_LOADED))[None, :]
    w_depth = gl.arange(0, DEPTH, gl.SliceLayout(1, W_LOADED))[:, None]
    x_at = x_rows * x_stride + x_depth
    w_at = gl.minimum(w_rows, n - 1) * w_stride + w_depth
    r_at = gl.minimum(w_rows + HALF, n - 1) * w_stride + w_depth
    x_tiles = gl.allocate_shared_memory(gl.float16, [2, TILE, DEPTH], X_SHARED)
    lefts = gl.allocate_shared_memory(gl.float16, [2, DEPTH, HALF], W_SHARED)
    rights = gl.allocate_shared_memory(gl.float16, [2, DEPTH, HALF], W_SHARED)
    left_total = gl.zeros((TILE, HALF), gl.float32, MMA)
    right_total = gl.zeros((TILE, HALF), gl.float32, MMA)
    for place in gl.static_range(2):
        first = place * DEPTH
        fetch(x_tiles.index(place), x_ptr, x_at + first, x_depth, k - first)
        fetch(lefts.index(place), w_ptr, w_at + first, w_depth, k - first)
        fetch(rights.index(place), w_ptr, r_at + first, w_depth, k - first)
    async_copy.wait_group(4)
    x, w = x_tiles.index(0).load(X_OPERAND), lefts.index(0).load(W_OPERAND)
    for start in range(0, k, 2 * DEPTH):
        for place in gl.static_range(2):
            ahead = start + (2 + place) * DEPTH
            left_total = gl.amd.cdna3.mfma(x, w, left_total)
            async_copy.wait_group(3)
            w = rights.index(place).load(W_OPERAND)
            fetch(x_tiles.index(place), x_ptr, x_at + ahead, x_depth, k - ahead)
            fetch(lefts.index(place), w_ptr, w_at + ahead, w_depth, k - ahead)
            right_total = gl.amd.cdna3.mfma(x, w, right_total)
            async_copy.wait_group(3)
            x = x_tiles.index(1 - place).load(X_OPERAND)
            w = lefts.index(1 - place).load(W_OPERAND)
            fetch(rights.index(place), w_ptr, r_at + ahead, w_depth, k - ahead)
    out_ptr += down * n + right
    store(left_total, out_ptr, m - down, n - right, n)
    store(right_total, out_ptr + HALF, m - down, n - right - HALF, n)


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
