"""Kernels for `python -m benchmarks simulator`, each with its launch: one case for each.

Runs in two forms: compiled for gfx942, and, under ``TRITON_INTERPRET=1``, by Triton's interpreter.
"""

# mypy: disable-error-code="no-untyped-def"
# Kernels are Triton's language, which has no types that mypy knows.
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def empty(out):
    """Nothing."""


@triton.jit
def add_exp(x, y, out, n, BLOCK: tl.constexpr):
    """Out = x + exp(y)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.exp(tl.load(y + i, mask=i < n)), mask=i < n)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    """Softmax of a row."""
    row = tl.program_id(0) * n
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row + c, mask=c < n, other=float("-inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row + c, e / tl.sum(e, 0), mask=c < n)


@triton.jit
def layer_norm(x, out, n, BLOCK: tl.constexpr):
    """Layer normalisation of a row."""
    row = tl.program_id(0) * n
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row + c, mask=c < n, other=0)
    v = tl.where(c < n, v - tl.sum(v, 0) / n, 0)
    tl.store(out + row + c, v / tl.sqrt(tl.sum(v * v, 0) / n + 1e-5), mask=c < n)


@triton.jit
def matmul(a, b, out, n, k, TILE: tl.constexpr, TILE_K: tl.constexpr):
    """Out = a b, fp16."""
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)
    step = tl.arange(0, TILE_K)
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, k, TILE_K):
        left = tl.load(a + i[:, None] * k + start + step[None, :])
        total += tl.dot(left, tl.load(b + (start + step[:, None]) * n + j[None, :]))
    tl.store(out + i[:, None] * n + j[None, :], total.to(tl.float16))


@triton.jit
def attention(q, k, v, out, n, CAUSAL: tl.constexpr, D: tl.constexpr, TILE: tl.constexpr):
    """Attention of one head, fp16."""
    head = tl.program_id(1) * n * D
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    d = tl.arange(0, D)
    query = tl.load(q + head + i[:, None] * D + d[None, :])
    top = tl.full([TILE], float("-inf"), tl.float32)
    total = tl.zeros([TILE], tl.float32)
    result = tl.zeros([TILE, D], tl.float32)
    end = (tl.program_id(0) + 1) * TILE if CAUSAL else n
    for start in range(0, end, TILE):
        j = start + tl.arange(0, TILE)
        score = tl.dot(query, tl.load(k + head + j[None, :] * D + d[:, None])) * 0.125
        if CAUSAL:
            score = tl.where(i[:, None] >= j[None, :], score, float("-inf"))
        higher = tl.maximum(top, tl.max(score, 1))
        p = tl.exp(score - higher[:, None])
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(p, 1)
        values = tl.load(v + head + j[:, None] * D + d[None, :])
        result = result * shrink[:, None] + tl.dot(p.to(tl.float16), values)
        top = higher
    result = (result / total[:, None]).to(tl.float16)
    tl.store(out + head + i[:, None] * D + d[None, :], result)


@triton.jit
def total_sum(x, out, n, BLOCK: tl.constexpr):
    """Sum with one atomic a program."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0), 0))


@triton.jit
def row_argmax(x, out, n, BLOCK: tl.constexpr):
    """Index of the largest element of a row."""
    c = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + c, mask=c < n, other=float("-inf"))
    tl.store(out + tl.program_id(0), tl.argmax(v, 0))


@triton.jit
def row_sort(x, out, BLOCK: tl.constexpr):
    """A row, sorted."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@triton.jit
def row_cumsum(x, out, BLOCK: tl.constexpr):
    """Running sum of a row."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0))


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    """GELU, tanh form."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    e = tl.exp(1.5957691216 * (v + 0.044715 * v * v * v))
    tl.store(out + i, v * (1 - 1 / (e + 1)), mask=i < n)


@triton.jit
def strided_copy(x, out, n, stride, BLOCK: tl.constexpr):
    """A copy whose neighbouring lanes are `stride` apart."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    rows = n // stride
    j = (i % rows) * stride + i // rows
    tl.store(out + j, tl.load(x + j, mask=i < n), mask=i < n)


@triton.jit
def transpose(x, out, m, n, TILE: tl.constexpr):
    """A transposed tile."""
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)
    tile = tl.load(x + i[:, None] * n + j[None, :])
    tl.store(out + j[:, None] * m + i[None, :], tl.trans(tile))


@triton.jit
def triad(a, b, out, n, TERMS: tl.constexpr, BLOCK: tl.constexpr):
    """BabelStream's kernels: copy or mul (one term), add or triad (two)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(a + i, mask=i < n)
    if TERMS == 2:
        v += 0.4 * tl.load(b + i, mask=i < n)
    tl.store(out + i, v, mask=i < n)


@triton.jit
def dot(a, b, out, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    """BabelStream's dot product, partial sums."""
    total = tl.zeros([BLOCK], tl.float64)
    for step in range(STEPS):
        i = (tl.program_id(0) * STEPS + step) * BLOCK + tl.arange(0, BLOCK)
        total += tl.load(a + i, mask=i < n) * tl.load(b + i, mask=i < n)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@dataclass(frozen=True)
class BenchCase:
    """One launch: the kernel, its grid and arguments.

    Attributes:
        types: Triton's types of the arguments that are not constants.
        make: The arguments; tensors on the CPU.
    """

    name: str
    kernel: Any
    grid: tuple[int, ...]
    types: tuple[str, ...]
    make: Callable[[], list[Any]]
    constants: dict[str, Any] = field(default_factory=dict)
    warps: int = 4

    @property
    def workgroups(self) -> int:
        """Workgroups of the launch."""
        return math.prod(self.grid)


def _random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def _rows(name: str, kernel: Any, rows: int, n: int, block: int, sized: bool = True) -> BenchCase:
    types = ("*fp32", "*fp32", "i32") if sized else ("*fp32", "*fp32")

    def make() -> list[Any]:
        return [_random(rows, n), torch.empty(rows, n), *([n] if sized else [])]

    return BenchCase(name, kernel, (rows,), types, make, {"BLOCK": block})


def _matmul(tile: int, tile_k: int, warps: int, size: int = 512) -> BenchCase:
    def make() -> list[Any]:
        a, b = _random(size, size, dtype=torch.half), _random(size, size, dtype=torch.half)
        return [a, b, torch.empty(size, size, dtype=torch.half), size, size]

    types = ("*fp16", "*fp16", "*fp16", "i32", "i32")
    name = f"matmul {size}^3 f16 {tile}x{tile}x{tile_k} w{warps}"
    grid = (size // tile, size // tile)
    return BenchCase(name, matmul, grid, types, make, {"TILE": tile, "TILE_K": tile_k}, warps)


def _attention(causal: bool) -> BenchCase:
    def make() -> list[Any]:
        values = [_random(4, 512, 64, dtype=torch.half) for _ in range(3)]
        return [*values, torch.empty(4, 512, 64, dtype=torch.half), 512]

    name = f"attention {'causal' if causal else 'full'} 4x512x64"
    constants = {"CAUSAL": causal, "D": 64, "TILE": 64}
    return BenchCase(name, attention, (8, 4), ("*fp16",) * 4 + ("i32",), make, constants)


def speed_cases() -> list[BenchCase]:
    """The prototype's table, as far as one file of kernels goes."""
    million = 1 << 20
    grid = (million // 1024,)
    block = {"BLOCK": 1024}

    def flat(inputs: int) -> Callable[[], list[Any]]:
        tensors = [_random(million) for _ in range(inputs)]
        return lambda: [*tensors, torch.zeros(million), million]

    def strided() -> list[Any]:
        return [*flat(1)(), 64]

    def square() -> list[Any]:
        return [_random(1024, 1024), torch.empty(1024, 1024), 1024, 1024]

    two, three = ("*fp32", "*fp32", "i32"), ("*fp32", "*fp32", "*fp32", "i32")
    return [
        BenchCase("add+exp 1M", add_exp, grid, three, flat(2), block),
        _rows("softmax 1024x1000", softmax, 1024, 1000, 1024),
        _rows("layernorm 512x3000", layer_norm, 512, 3000, 4096),
        _matmul(16, 32, 1),
        _matmul(64, 32, 4),
        _matmul(128, 32, 4),
        _matmul(128, 64, 8),
        _attention(True),
        _attention(False),
        BenchCase("sum+atomics 1M", total_sum, grid, two, flat(1), block),
        _rows("argmax 1024x1000", row_argmax, 1024, 1000, 1024),
        _rows("sort 512x512", row_sort, 512, 512, 512, sized=False),
        _rows("cumsum 512x1024", row_cumsum, 512, 1024, 1024, sized=False),
        BenchCase("gelu 1M", gelu, grid, two, flat(1), block),
        BenchCase("strided copy 1M", strided_copy, grid, (*two, "i32"), strided, block),
        BenchCase("transpose 1Kx1K", transpose, (16, 16), (*two, "i32"), square, {"TILE": 64}),
    ]


def stream_case(name: str, count: int) -> BenchCase:
    """One of BabelStream's kernels on arrays of `count` doubles.

    Args:
        name: ``copy``, ``mul``, ``add``, ``triad`` or ``dot``.
        count: Elements of an array.
    """
    types = ("*fp64", "*fp64", "*fp64", "i32")

    def make() -> list[Any]:
        return [*(torch.ones(count, dtype=torch.float64) for _ in range(3)), count]

    if name == "dot":
        constants = {"BLOCK": 1024, "STEPS": 16}
        return BenchCase(name, dot, (count // 16384,), types, make, constants)
    terms = 2 if name in ("add", "triad") else 1
    constants = {"TERMS": terms, "BLOCK": 1024}
    return BenchCase(name, triad, (count // 1024,), types, make, constants)
