"""Kernels that some versions of Triton compile wrongly, or not at all."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def two_loops(
    x, a, b, middle, out, K: tl.constexpr, N: tl.constexpr, TILE: tl.constexpr, ORDER: tl.constexpr
):  # fmt: skip
    """Two products; the second reads what the first has stored (triton-lang/triton#9887)."""
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    p, q = tl.arange(0, K), tl.arange(0, TILE)
    for start in range(0, N, TILE):
        j = start + q
        left = tl.load(x + i[:, None] * K + p[None, :])
        part = tl.dot(left, tl.load(a + p[:, None] * N + j[None, :]))
        tl.store(middle + i[:, None] * N + j[None, :], tl.maximum(part, 0.0).to(tl.float16))
    if ORDER:
        tl.debug_barrier()
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, N, TILE):
        left = tl.load(middle + i[:, None] * N + (start + q)[None, :])
        total = tl.dot(left, tl.load(b + (start + q)[:, None] * TILE + q[None, :]), total)
    tl.store(out + i[:, None] * TILE + q[None, :], total)


@triton.jit
def first_come(flags, out, N: tl.constexpr):
    """Loads a flag and then sets it: every wave has to load before the first one sets."""
    flag = flags + tl.program_id(0)
    i = tl.arange(0, N)
    part = tl.where(i < N, 1, 0)
    if tl.load(flag) == 0:
        tl.atomic_xchg(flag, 1)
        part = part + 1
    tl.store(out + tl.program_id(0) * N + i, part)


@triton.jit
def send(parts, ready, out, N: tl.constexpr, ORDER: tl.constexpr):
    """The first program stores a part and says so; the second waits for it and reads it."""
    i = tl.arange(0, N)
    if tl.program_id(0) == 0:
        tl.store(parts + i, i + 1)
        if ORDER:
            tl.debug_barrier()
        tl.atomic_xchg(ready, 1)
    else:
        while tl.atomic_cas(ready, 1, 1) != 1:
            pass
        tl.store(out + i, tl.load(parts + (N - 1 - i)))
