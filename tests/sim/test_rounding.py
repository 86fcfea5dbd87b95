"""Single roundings, the signs of zeros, rounding modes, and literals of 64-bit moves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from kernel_gym.sim.asm.errors import UnsupportedInstruction
from tests.sim.support import execute, kernel_text

ZEROS = np.array([0.0, -0.0, 0.0, -0.0, 1.0, -1.0, np.inf, -0.0] * 8)
OTHERS = np.array([-0.0, 0.0, 0.0, -0.0, -0.0, 0.0, -0.0, -5.0] * 8)


def signed_extreme(name, a, b):
    """IEEE 754-2019 maximum or minimum of numbers: -0 is less than +0."""
    key = lambda x: (x, not np.signbit(x))  # noqa: E731
    pick = max if name == "max" else min
    return np.array([pick(x, y, key=key) for x, y in zip(a, b, strict=True)])


@pytest.mark.parametrize("name", ["max", "min"])
def test_signs_of_zero_f32(any_engine, name):
    a, b = ZEROS.astype(np.float32), OTHERS.astype(np.float32)
    actual = execute(any_engine, f"v_{name}_f32_e32 v20, v10, v11", [a, b])[0]
    wanted = signed_extreme(name, a, b).astype(np.float32)
    np.testing.assert_array_equal(actual, wanted.view(np.uint32))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("form", ["v_{}_f16_e32", "v_pk_{}_f16"])
def test_signs_of_zero_f16(any_engine, name, form):
    a, b = (x.astype(np.float16).view(np.uint16).astype(np.uint32) for x in (ZEROS, OTHERS))
    actual = execute(any_engine, f"{form.format(name)} v20, v10, v11", [a, b])[0]
    wanted = signed_extreme(name, ZEROS, OTHERS).astype(np.float16)
    np.testing.assert_array_equal(actual & 0xFFFF, wanted.view(np.uint16))


@pytest.mark.parametrize("name", ["max", "min"])
def test_signs_of_zero_f64(any_engine, name):
    words = [x.view(np.uint32).reshape(64, 2)[:, i] for x in (ZEROS, OTHERS) for i in (0, 1)]
    low, high = execute(any_engine, f"v_{name}_f64 v[20:21], v[10:11], v[12:13]", words, 2)
    actual = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    wanted = signed_extreme(name, ZEROS, OTHERS)
    np.testing.assert_array_equal(actual, wanted.view(np.uint64))


def nearest_half(value: Fraction) -> np.float16:
    """An exact value rounded to f16, ties to even."""
    guess = np.float16(float(value))
    around = [
        np.nextafter(guess, np.float16(-np.inf)),
        guess,
        np.nextafter(guess, np.float16(np.inf)),
    ]
    odd = lambda x: int(x.view(np.uint16)) & 1  # noqa: E731
    return min(around, key=lambda x: (abs(Fraction(float(x)) - value), odd(x)))


@pytest.mark.parametrize("form", ["v_fma_f16", "v_pk_fma_f16"])
def test_half_fma_rounds_once(any_engine, form):
    random = np.random.default_rng(5)
    a, b, c = (random.uniform(-2, 2, 64).astype(np.float16) for _ in range(3))
    # 2050 + (1 - 2^-14) lies below the tie at 2051, on which a sum in f32 falls.
    a[:4], b[:4], c[:4] = 1 + 2**-7, 1 - 2**-7, [2050, 2052, 2048, 2054]
    a[4:8], b[4:8], c[4:8] = -1 - 2**-7, 1 - 2**-7, [-2050, -2052, -2048, -2054]
    c[8:40] = (c[8:40] * 1024).astype(np.float16)
    words = [x.view(np.uint16).astype(np.uint32) for x in (a, b, c)]
    actual = execute(any_engine, f"{form} v20, v10, v11, v12", words)[0]
    exact = [
        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        for x, y, z in zip(a, b, c, strict=True)
    ]
    wanted = np.array([nearest_half(value) for value in exact])
    np.testing.assert_array_equal(actual & 0xFFFF, wanted.view(np.uint16))
    assert wanted[0] == 2050


def test_half_fma_of_specials(any_engine):
    a = np.resize(np.array([np.inf, 65504, np.nan, np.inf], np.float16), 64)
    b = np.resize(np.array([2, 2, 1, 0], np.float16), 64)
    words = [x.view(np.uint16).astype(np.uint32) for x in (a, b, np.ones(64, np.float16))]
    actual = execute(any_engine, "v_fma_f16 v20, v10, v11, v12", words)[0]
    values = actual.astype(np.uint16).view(np.float16)
    assert np.isinf(values[:2]).all()
    assert np.isnan(values[2:4]).all()


@pytest.mark.parametrize("write", ["hwreg(HW_REG_MODE, 4, 2), 3", "hwreg(HW_REG_MODE, 23, 1), 1"])
def test_other_modes_pass(engine, write):
    engine.load(kernel_text(f"\ts_setreg_imm32_b32 {write}"))


def test_flushing_half_denormals_is_refused(engine):
    with pytest.raises(UnsupportedInstruction, match="denormals of f16"):
        engine.load(kernel_text("\ts_setreg_imm32_b32 hwreg(HW_REG_MODE, 6, 2), 0"))


@pytest.mark.parametrize(("mode", "bits"), [(0, 0x3F800000), (1, 0x3F800001), (2, 0x3F800000)])
def test_rounding_mode_of_f32(any_engine, mode, bits):
    tiny = np.full(64, 2**-30, np.float32)
    setup = f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), {mode}"
    actual = execute(any_engine, "v_add_f32_e32 v20, 1.0, v10", [tiny], setup=setup)[0]
    assert set(actual.tolist()) == {bits}


def test_flushing_f32_denormals(any_engine):
    denormal = np.full(64, 5, np.uint32)
    setup = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0"
    actual = execute(any_engine, "v_add_f32_e32 v20, v10, v10", [denormal], setup=setup)[0]
    assert set(actual.tolist()) == {0}
    kept = execute(any_engine, "v_add_f32_e32 v20, v10, v10", [denormal])[0]
    assert set(kept.tolist()) == {10}


def test_inline_float_of_a_wide_move_is_a_double(any_engine):
    low, high = execute(any_engine, "v_mov_b64_e32 v[20:21], 0.5", [], 2)
    assert set(low.tolist()) == {0}
    assert set(high.tolist()) == {0x3FE00000}
    setup = "s_mov_b64 s[8:9], -2.0"
    low, high = execute(any_engine, "v_mov_b64_e32 v[20:21], s[8:9]", [], 2, setup=setup)
    assert set(high.tolist()) == {0xC0000000}
