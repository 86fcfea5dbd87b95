"""Triton kernels for the simulator's tests, compiled for gfx942 without a GPU."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernel_gym.triton_versions import ENVIRONMENT

os.environ.update(ENVIRONMENT)


def compiled(
    function: Any,
    types: list[str],
    warps: int = 4,
    stages: int = 2,
    multiples: tuple[str, ...] = ("n", "k", "m"),
    arch: str = "gfx942",
    **constants: Any,
) -> tuple[str, int]:
    """Assembler text and LDS bytes of a kernel.

    Args:
        function: The ``triton.jit`` function.
        types: Types of the arguments that are not constants, in order.
        warps: Waves of a workgroup.
        stages: Software-pipeline stages.
        multiples: Integer arguments that are known to be multiples of 16.
        arch: The target.
        **constants: The constexpr arguments.
    """
    items = tuple(sorted(constants.items()))
    return _compiled(function, tuple(types), warps, stages, multiples, arch, items)


@cache
def _compiled(
    function: Any,
    types: tuple[str, ...],
    warps: int,
    stages: int,
    multiples: tuple[str, ...],
    arch: str,
    items: tuple[Any, ...],
) -> tuple[str, int]:
    constants = dict(items)
    names = [name for name in function.arg_names if name not in constants]
    signature = dict(zip(names, types, strict=True))
    signature = {name: signature.get(name, "constexpr") for name in function.arg_names}
    aligned = {
        (i,): [["tt.divisibility", 16]]
        for i, name in enumerate(function.arg_names)
        if signature[name].startswith("*") or name in multiples
    }
    kernel = triton.compile(
        ASTSource(function, signature, constants, attrs=aligned),
        target=GPUTarget("hip", arch, 64),
        options={"num_warps": warps, "num_stages": stages},
    )
    return kernel.asm["amdgcn"], kernel.metadata.shared


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def strided_copy(x, out, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    rows = n // stride
    j = (i % rows) * stride + i // rows
    tl.store(out + j, tl.load(x + j, mask=i < n), mask=i < n)


@triton.jit
def transpose(x, out, m, n, TILE_M: tl.constexpr, TILE_N: tl.constexpr):
    i = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    j = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    tile = tl.load(x + i[:, None] * n + j[None, :])
    tl.store(out + j[:, None] * m + i[None, :], tl.trans(tile))


@triton.jit
def three_passes(x, out, n, BLOCK: tl.constexpr):
    """Softmax of a row of any length, block by block."""
    row = tl.program_id(0) * n
    c = tl.arange(0, BLOCK)
    top = -float("inf")
    for start in range(0, n, BLOCK):
        top = tl.maximum(top, tl.max(tl.load(x + row + start + c), 0))
    total = 0.0
    for start in range(0, n, BLOCK):
        total += tl.sum(tl.exp(tl.load(x + row + start + c) - top), 0)
    for start in range(0, n, BLOCK):
        e = tl.exp(tl.load(x + row + start + c) - top)
        tl.store(out + row + start + c, e / total)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def layer_norm(x, weight, bias, out, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / n
    centred = tl.where(i < n, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + eps)
    w = tl.load(weight + i, mask=i < n).to(tl.float32)
    b = tl.load(bias + i, mask=i < n).to(tl.float32)
    tl.store(out + row * n + i, (centred * scale * w + b).to(out.dtype.element_ty), mask=i < n)


@triton.jit
def matmul(
    a,
    b,
    out,
    m,
    n,
    k,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
    TOTAL: tl.constexpr = tl.float32,
):
    i = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    j = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    p = tl.arange(0, TILE_K)
    total = tl.zeros((TILE_M, TILE_N), TOTAL)
    for start in range(0, k, TILE_K):
        x = tl.load(a + i[:, None] * k + (start + p)[None, :])
        y = tl.load(b + (start + p)[:, None] * n + j[None, :])
        total += tl.dot(x, y, out_dtype=TOTAL)
    tl.store(out + i[:, None] * n + j[None, :], total.to(out.dtype.element_ty))


@triton.jit
def causal_attention(q, k, v, out, scale, n, D: tl.constexpr, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    d = tl.arange(0, D)
    base = tl.program_id(1) * n * D
    query = tl.load(q + base + i[:, None] * D + d[None, :])
    highest = tl.full([TILE], -float("inf"), tl.float32)
    norm = tl.zeros([TILE], tl.float32)
    total = tl.zeros([TILE, D], tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * TILE, TILE):
        j = start + tl.arange(0, TILE)
        key = tl.load(k + base + j[None, :] * D + d[:, None])
        score = tl.dot(query, key) * (scale * 1.44269504)
        score = tl.where(i[:, None] >= j[None, :], score, -1.0e6)
        new = tl.maximum(highest, tl.max(score, 1))
        p = tl.math.exp2(score - new[:, None])
        shrink = tl.math.exp2(highest - new)
        norm = norm * shrink + tl.sum(p, 1)
        value = tl.load(v + base + j[:, None] * D + d[None, :])
        total = tl.dot(p.to(value.dtype), value, total * shrink[:, None])
        highest = new
    tl.store(out + base + i[:, None] * D + d[None, :], (total / norm[:, None]).to(tl.float16))


@triton.jit
def row_argmax(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    tl.store(out + row, tl.argmax(v, axis=0))


@triton.jit
def row_cumsum(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i), axis=0))


@triton.jit
def row_sort(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@triton.jit
def total_sum(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0))


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    y = 0.5 * v * (1 + tl.math.erf(v * 0.7071067811865476))
    tl.store(out + i, y.to(out.dtype.element_ty), mask=i < n)


@triton.jit
def integer_math(x, y, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a // b + a % b + a * b + (a >> 3) + tl.where(a > b, a, b))


@triton.jit
def double_math(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, tl.sqrt(tl.abs(v)) / (1 + tl.exp(v)) + tl.log(tl.abs(v) + 1))


@triton.jit
def locked_increment(lock, counter, UNUSED: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(counter, tl.load(counter) + 1)
    tl.atomic_xchg(lock, 0)


@triton.jit
def after_the_last_program(flag, out, BLOCK: tl.constexpr):
    """The first program waits for the last one. With several waves its loop has a barrier."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        while tl.atomic_cas(flag, 1, 1) != 1:
            pass
    if tl.program_id(0) == tl.num_programs(0) - 1:
        tl.atomic_xchg(flag, 1)
    tl.store(out + i, i)


@triton.jit
def reversed_copy(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.flip(tl.load(x + i), 0))


@triton.jit
def uneven(x, out, n, every, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    if program % every == every - 1:
        for _ in range(100):
            value = tl.load(x + i + (value > 1e30).to(tl.int32), mask=i < n) * 0.5 + value * 0.5
    tl.store(out + i, value, mask=i < n)


@triton.jit
def unlike_sums(x, lengths, out, BLOCK: tl.constexpr):
    """Adds as many blocks to a row in place as its workgroup has."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    length = tl.load(lengths + row)
    total = tl.load(out + row * BLOCK + at)
    for block in range(length):
        total += tl.load(x + block * BLOCK + at)
    tl.store(out + row * BLOCK + at, total)
