"""Step 9: programs of one chiplet compute neighbouring tiles, which share their L2."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd.cdna4 import async_copy

TILE, HALF, DEPTH = gl.constexpr(256), gl.constexpr(128), gl.constexpr(64)
CHIPLETS, GROUP = gl.constexpr(8), gl.constexpr(4)
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


X_SHARED, X_LOADED = padded(X_OPERAND.value, [HALF.value, DEPTH.value])
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
def place_of(program, down_count, across_count):
    """Returns the row and the column of a program's tile.

    Programs go to the eight chiplets (XCDs) in turn, each with its own L2. Programs of a chiplet
    get neighbouring tiles, GROUP rows high, so that they read the same rows of both matrices.
    """
    count = down_count * across_count
    chiplet, within = program % CHIPLETS, program // CHIPLETS
    tall, rest = count // CHIPLETS, count % CHIPLETS
    tile = chiplet * tall + gl.minimum(chiplet, rest) + within
    group = tile // (GROUP * across_count)
    height = gl.minimum(down_count - group * GROUP, GROUP)
    inside = tile % (GROUP * across_count)
    return group * GROUP + inside % height, inside // height


@gluon.jit
def matmul_nt_kernel(x_ptr, w_ptr, out_ptr, m, n, k, x_stride, w_stride):
    """Computes one TILE x TILE tile."""
    row, col = place_of(gl.program_id(0), gl.cdiv(m, TILE), gl.cdiv(n, TILE))
    down, right = row * TILE, col * TILE
    x_rows = down + gl.arange(0, HALF, gl.SliceLayout(1, X_LOADED))[:, None]
    w_rows = right + gl.arange(0, HALF, gl.SliceLayout(0, W_LOADED))[None, :]
    x_depth = gl.arange(0, DEPTH, gl.SliceLayout(0, X_LOADED))[None, :]
    w_depth = gl.arange(0, DEPTH, gl.SliceLayout(1, W_LOADED))[:, None]
    x_at = gl.minimum(x_rows, m - 1) * x_stride + x_depth
    b_at = gl.minimum(x_rows + HALF, m - 1) * x_stride + x_depth
    w_at = gl.minimum(w_rows, n - 1) * w_stride + w_depth
    r_at = gl.minimum(w_rows + HALF, n - 1) * w_stride + w_depth
    tops = gl.allocate_shared_memory(gl.float16, [2, HALF, DEPTH], X_SHARED)
    bottoms = gl.allocate_shared_memory(gl.float16, [2, HALF, DEPTH], X_SHARED)
    lefts = gl.allocate_shared_memory(gl.float16, [2, DEPTH, HALF], W_SHARED)
    rights = gl.allocate_shared_memory(gl.float16, [2, DEPTH, HALF], W_SHARED)
    top_left = gl.zeros((HALF, HALF), gl.float32, MMA)
    top_right = gl.zeros((HALF, HALF), gl.float32, MMA)
    bottom_left = gl.zeros((HALF, HALF), gl.float32, MMA)
    bottom_right = gl.zeros((HALF, HALF), gl.float32, MMA)
    for place in gl.static_range(2):
        first = place * DEPTH
        fetch(lefts.index(place), w_ptr, w_at + first, w_depth, k - first)
        fetch(tops.index(place), x_ptr, x_at + first, x_depth, k - first)
        fetch(bottoms.index(place), x_ptr, b_at + first, x_depth, k - first)
        fetch(rights.index(place), w_ptr, r_at + first, w_depth, k - first)
    async_copy.wait_group(6)
    left, top = lefts.index(0).load(W_OPERAND), tops.index(0).load(X_OPERAND)
    for start in range(0, k, 2 * DEPTH):
        for place in gl.static_range(2):
            ahead = start + (2 + place) * DEPTH
            top_left = gl.amd.cdna3.mfma(top, left, top_left)
            async_copy.wait_group(5)
            bottom = bottoms.index(place).load(X_OPERAND)
            fetch(lefts.index(place), w_ptr, w_at + ahead, w_depth, k - ahead)
            bottom_left = gl.amd.cdna3.mfma(bottom, left, bottom_left)
            async_copy.wait_group(5)
            other = rights.index(place).load(W_OPERAND)
            fetch(tops.index(place), x_ptr, x_at + ahead, x_depth, k - ahead)
            top_right = gl.amd.cdna3.mfma(top, other, top_right)
            async_copy.wait_group(5)
            left = lefts.index(1 - place).load(W_OPERAND)
            fetch(bottoms.index(place), x_ptr, b_at + ahead, x_depth, k - ahead)
            bottom_right = gl.amd.cdna3.mfma(bottom, other, bottom_right)
            async_copy.wait_group(5)
            top = tops.index(1 - place).load(X_OPERAND)
            fetch(rights.index(place), w_ptr, r_at + ahead, w_depth, k - ahead)
    out_ptr += down * n + right
    store(top_left, out_ptr, m - down, n - right, n)
    store(top_right, out_ptr + HALF, m - down, n - right - HALF, n)
    out_ptr += HALF * n
    store(bottom_left, out_ptr, m - down - HALF, n - right, n)
    store(bottom_right, out_ptr + HALF, m - down - HALF, n - right - HALF, n)


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
