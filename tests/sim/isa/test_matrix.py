"""Matrix instructions: published rules of accumulation in exact fractions, and sparse products."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import torch

from kernel_gym.sim import native
from kernel_gym.sim.asm.errors import UnsupportedInstruction
from kernel_gym.sim.compiler.decode import decode_kernel
from kernel_gym.sim.engine.engine import Engine
from tests.sim.isa.values import round_fraction
from tests.sim.support import LANES, execute, instruction_text, kernel_text, parse, run

Rule = Callable[[list[float], list[float], float], float | np.float32]
"""From two factors of some products each, and the sum so far, to the next sum."""


def exponent(x: float, least: int) -> int:
    """The exponent of the leading bit, at least the exponent of denormals and of zero."""
    return max(math.frexp(x)[1] - 1, least) if x else least


def floor_to(x: Fraction, power: int) -> Fraction:
    """Rounded down to a multiple of 2^power."""
    unit = Fraction(2) ** power
    return Fraction(math.floor(x / unit)) * unit


def truncate_to(x: Fraction, power: int) -> Fraction:
    return -floor_to(-x, power) if x < 0 else floor_to(x, power)


def cdna3_group(a: list[float], b: list[float], c: float, least: int) -> float:
    """A group of 16-bit products and the sum so far (arXiv 2511.10909)."""
    pairs = list(zip(a, b, strict=True))
    tops = [exponent(x, least) + exponent(y, least) if x and y else -126 for x, y in pairs]
    top = max(tops)
    products = sum(truncate_to(Fraction(x) * Fraction(y), top - 24) for x, y in pairs)
    joint = max(top, exponent(c, -126))
    total = floor_to(products, joint - 31) + floor_to(Fraction(c), joint - 24)
    return float(round_fraction(total, 32))


def cdna3_bytes(a: list[float], b: list[float], c: float, least: int) -> float:
    """The same of 16 products of 8-bit floats: even and odd ones apart, then joined."""
    sums, tops = [], []
    for odd in (0, 1):
        pairs = list(zip(a[odd::2], b[odd::2], strict=True))
        exponents = [exponent(x, least) + exponent(y, least) if x and y else -126 for x, y in pairs]
        tops.append(max(exponents))
        sums.append(sum(truncate_to(Fraction(x) * Fraction(y), tops[-1] - 24) for x, y in pairs))
    top = max(tops)
    joint = max(top, exponent(c, -126))
    products = floor_to(sum(floor_to(part, top - 24) for part in sums), joint - 31)
    lost = exponent(c, -126) < joint - 25
    total = products + (0 if lost else floor_to(Fraction(c), joint - 24))
    return float(round_fraction(total, 32))


def flushed(x: np.float32, least: float = 2.0**-126) -> np.float32:
    """Zero for denormals."""
    return x if abs(x) >= least else np.float32(0)


def cdna2_group(a: list[float], b: list[float], c: float) -> np.float32:
    """Four products of f16 and the sum so far: every step is f32, rounded and flushed."""
    pairs = zip(*([flushed(np.float32(x), 2.0**-14) for x in side] for side in (a, b)), strict=True)
    products = [flushed(x * y) for x, y in pairs]
    first, second = flushed(products[0] + products[1]), flushed(products[2] + products[3])
    return flushed(flushed(np.float32(c)) + flushed(first + second))


def dot_products(a: np.ndarray, b: np.ndarray, k: int) -> list[tuple[int, int, list, list]]:
    """For some lanes of a 16x16 product: lane, result, and the factors by k.

    Args:
        a: (lanes, elements), the first matrix as lanes hold it.
        b: the same of the second.
        k: how many products each result adds.
    """
    each, values = a.shape[1], []
    for lane in range(0, LANES, 5):
        for r in range(4):
            row, column = 4 * (lane // 16) + r, lane % 16
            x = [float(a[16 * (i // each) + row][i % each]) for i in range(k)]
            y = [float(b[16 * (i // each) + column][i % each]) for i in range(k)]
            values.append((lane, r, x, y))
    return values


def product(engine: Engine, text: str, rows: list[np.ndarray], target: str) -> np.ndarray:
    """Four rows of results."""
    result = np.zeros((4, LANES), np.float32)
    kernel = instruction_text(text, len(rows), 4).replace("gfx942", target)
    run(engine, kernel, (1,), [np.stack([row.view(np.uint32) for row in rows]), result])
    return result


def addends(random: np.random.Generator) -> np.ndarray:
    """(4, 64) of f32 over many magnitudes."""
    scale = 2.0 ** random.integers(-20, 10, (4, LANES))
    return (random.standard_normal((4, LANES)) * scale).astype(np.float32)


def halves(random: np.random.Generator) -> np.ndarray:
    """(4, 64) words of f16 pairs over many magnitudes."""
    values = random.standard_normal((4, 64, 2)) * 2.0 ** random.integers(-12, 10, (4, 64, 2))
    return values.astype(np.float16)


@pytest.fixture(scope="module")
def exact_engine() -> Engine:
    return Engine(threads=1, exact_matrix=True)


def assert_added_in_groups(
    actual: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, k: int, size: int, rule: Rule
) -> None:
    """Each result is its addend and then, by the rule, `size` products at a time.

    That is not just correct rounding: some differ from the correctly rounded sum.
    """
    different = 0
    for lane, r, x, y in dot_products(a, b, k):
        total = c[r, lane]
        for first in range(0, k, size):
            total = rule(x[first : first + size], y[first : first + size], float(total))
        assert actual[r, lane] == np.float32(total)
        plain = math.fsum([p * q for p, q in zip(x, y, strict=True)] + [float(c[r, lane])])
        different += bool(np.float32(plain) != actual[r, lane])
    assert different


def test_cdna3_rule(exact_engine):
    random = np.random.default_rng(3)
    values, c = halves(random), addends(random)
    rows = [*(v.view(np.uint32).reshape(LANES) for v in values), *c]
    text = "v_mfma_f32_16x16x16_f16 v[20:23], v[10:11], v[12:13], v[14:17]"
    actual = product(exact_engine, text, rows, "gfx942")
    a, b = (np.concatenate(values[i : i + 2], axis=1).astype(float) for i in (0, 2))
    assert_added_in_groups(actual, a, b, c, 16, 8, partial(cdna3_group, least=-14))


def test_cdna3_rule_of_bytes(exact_engine):
    random = np.random.default_rng(7)
    scale = 2.0 ** random.integers(-6, 6, (2, LANES, 8))
    values = torch.from_numpy(random.standard_normal(scale.shape) * scale)
    values = values.to(torch.float8_e4m3fnuz)
    words = values.view(torch.uint8).numpy().view(np.uint32)  # (2, lanes, 2)
    c = addends(random)
    rows = [*words[0].T.copy(), *words[1].T.copy(), *c]
    text = "v_mfma_f32_16x16x32_fp8_fp8 v[20:23], v[10:11], v[12:13], v[14:17]"
    actual = product(exact_engine, text, rows, "gfx942")
    a, b = values.double().numpy()
    assert_added_in_groups(actual, a, b, c, 32, 16, partial(cdna3_bytes, least=-7))


def test_cdna3_rule_of_xf32(exact_engine):
    random = np.random.default_rng(9)
    scale = 2.0 ** random.integers(-12, 12, (2, 2, LANES))
    values = (random.standard_normal(scale.shape) * scale).astype(np.float32)
    c = addends(random)
    text = "v_mfma_f32_16x16x8_xf32 v[20:23], v[10:11], v[12:13], v[14:17]"
    actual = product(exact_engine, text, [*values[0], *values[1], *c], "gfx942")
    short = (values.view(np.uint32) & ~np.uint32(0x1FFF)).view(np.float32)
    assert_added_in_groups(
        actual, short[0].T, short[1].T, c, 8, 4, partial(cdna3_group, least=-126)
    )


def test_cdna2_rule(exact_engine):
    random = np.random.default_rng(11)
    values = halves(random)
    values[:, ::7, 0] = 3e-6  # denormals are taken for zero
    c = addends(random)
    c[:, ::9] = 1e-40
    text = "v_mfma_f32_16x16x16f16 v[20:23], v[10:11], v[12:13], v[14:17]"
    rows = [*(v.view(np.uint32).reshape(LANES) for v in values), *c]
    actual = product(exact_engine, text, rows, "gfx90a")
    a, b = (np.concatenate(values[i : i + 2], axis=1).astype(float) for i in (0, 2))
    assert_added_in_groups(actual, a, b, c, 16, 4, cdna2_group)


def test_no_rule_for_gfx950():
    text = kernel_text("\tv_mfma_f32_16x16x32_f16 v[20:23], v[2:5], v[6:9], v[20:23]")
    handlers = native.load_library(native.choose_isa()).handlers
    with pytest.raises(UnsupportedInstruction, match="no rule of its accumulation on gfx950"):
        decode_kernel(parse(text.replace("gfx942", "gfx950")), "k", handlers, exact=True)


def test_sparse_product(engine):
    random = np.random.default_rng(5)
    a = random.integers(-4, 5, (64, 4)).astype(np.float16)
    b = random.integers(-4, 5, (64, 8)).astype(np.float16)
    picks = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110])  # pairs of places, ascending
    low, high = random.choice(picks, 64), random.choice(picks, 64)
    index = (low | high << 4).astype(np.uint32)
    words = [*a.view(np.uint32).reshape(64, 2).T, *b.view(np.uint32).reshape(64, 4).T, index]
    setup = "\n\t".join(f"v_mov_b32_e32 v{20 + i}, 0" for i in range(4))
    text = "v_smfmac_f32_16x16x32_f16 v[20:23], v[10:11], v[12:15], v16"
    actual = execute(engine, text, words, 4, setup=setup).view(np.float32)
    dense_a, dense_b = np.zeros((16, 32)), np.zeros((32, 16))
    for lane in range(64):
        row, first = lane % 16, 8 * (lane // 16)
        for e in range(4):
            place = int(index[lane]) >> 2 * e & 3
            dense_a[row, first + 4 * (e // 2) + place] = a[lane, e]
        dense_b[first : first + 8, row] = b[lane]
    product = dense_a @ dense_b
    wanted = [[product[4 * (lane // 16) + r, lane % 16] for lane in range(64)] for r in range(4)]
    np.testing.assert_array_equal(actual, np.array(wanted, np.float32))
