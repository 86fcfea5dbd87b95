"""Matrix instructions: published rules of accumulation in exact fractions, and sparse products."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from kernel_gym.sim import native
from kernel_gym.sim.asm import parse
from kernel_gym.sim.decode import decode_kernel
from kernel_gym.sim.engine import Engine
from kernel_gym.sim.errors import UnsupportedInstruction
from tests.sim.isa.values import round_fraction
from tests.sim.support import execute, kernel_text


def exponent(x: float, least: int) -> int:
    """That of the leading bit, not below that of denormals; zero has the least."""
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


def halves(random: np.random.Generator) -> np.ndarray:
    """(4, 64) words of f16 pairs over many magnitudes."""
    values = random.standard_normal((4, 64, 2)) * 2.0 ** random.integers(-12, 10, (4, 64, 2))
    return values.astype(np.float16)


@pytest.fixture(scope="module")
def exact_engine() -> Engine:
    return Engine(threads=1, exact_matrix=True)


def test_cdna3_rule(exact_engine):
    random = np.random.default_rng(3)
    values = halves(random)
    c = random.standard_normal((4, 64)) * 2.0 ** random.integers(-20, 10, (4, 64))
    c = c.astype(np.float32)
    rows = [*(v.view(np.uint32).reshape(64) for v in values), *c]
    text = "v_mfma_f32_16x16x16_f16 v[20:23], v[10:11], v[12:13], v[14:17]"
    found = execute(exact_engine, text, rows, 4).view(np.float32)
    a = np.concatenate(values[:2].transpose(0, 1, 2), axis=1).astype(float)  # (lane, 4 k)
    b = np.concatenate(values[2:], axis=1).astype(float)
    different = 0
    for lane in range(0, 64, 5):
        for r in range(4):
            row, column = 4 * (lane // 16) + r, lane % 16
            x = [a[16 * (k // 4) + row][k % 4] for k in range(16)]
            y = [b[16 * (k // 4) + column][k % 4] for k in range(16)]
            total = float(c[r, lane])
            for first in (0, 8):
                total = cdna3_group(x[first : first + 8], y[first : first + 8], total, -14)
            assert found[r, lane] == np.float32(total)
            plain = math.fsum([p * q for p, q in zip(x, y, strict=True)] + [float(c[r, lane])])
            different += np.float32(plain) != np.float32(total)
    assert different  # the rule is not just correct rounding


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
    found = execute(engine, text, words, 4, setup=setup).view(np.float32)
    dense_a, dense_b = np.zeros((16, 32)), np.zeros((32, 16))
    for lane in range(64):
        row, first = lane % 16, 8 * (lane // 16)
        for e in range(4):
            place = int(index[lane]) >> 2 * e & 3
            dense_a[row, first + 4 * (e // 2) + place] = a[lane, e]
        dense_b[first : first + 8, row] = b[lane]
    product = dense_a @ dense_b
    wanted = [[product[4 * (lane // 16) + r, lane % 16] for lane in range(64)] for r in range(4)]
    np.testing.assert_array_equal(found, np.array(wanted, np.float32))
