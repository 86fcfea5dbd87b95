"""Schedules of matmul: tile sizes, warps and pipeline stages. The largest overflow the LDS."""

from kernel_gym.tasks.tuning import Tuning

_KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_stride, b_stride,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, DEPTH: tl.constexpr,
):
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    cols = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    inner = tl.arange(0, DEPTH)
    total = tl.zeros([TILE_M, TILE_N], tl.float32)
    for start in range(0, k, DEPTH):
        depth = start + inner
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_stride + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        b = tl.load(
            b_ptr + depth[:, None].to(tl.int64) * b_stride + cols[None, :],
            mask=(depth[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        total = tl.dot(a, b, total)
    tl.store(
        out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :],
        total.to(tl.float16),
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )


def matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, $TILE_M), triton.cdiv(n, $TILE_N))
    matmul_kernel[grid](
        a, b, out, m, n, k, a.stride(0), b.stride(0),
        TILE_M=$TILE_M, TILE_N=$TILE_N, DEPTH=$DEPTH, num_warps=$WARPS, num_stages=$STAGES,
    )
    return out
"""

TUNING = Tuning(
    space={
        "TILE_M": (16, 32, 64, 128),
        "TILE_N": (16, 32, 64, 128),
        "DEPTH": (16, 32, 64, 128),
        "WARPS": (1, 2, 4, 8),
        "STAGES": (1, 2),
    },
    template=_KERNEL.lstrip(),
)
