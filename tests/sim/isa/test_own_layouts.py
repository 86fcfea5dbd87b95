"""Operations whose manual's pseudo-code cannot be translated, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gym.sim.engine import Engine
from tests.sim.support import LANES, execute, instruction_text, run

RNG = np.random.default_rng(11)
A, B, C = RNG.integers(0, 1 << 32, (3, LANES), dtype=np.uint32)
SPECIAL = np.array(
    [0, -0.0, 1, -1, 0.5, 1.5, -2, 65504, 65519, 65520, 1e-7, 6e-8, 3e-5], np.float32
)
FLOATS = np.resize(np.concatenate([SPECIAL, RNG.standard_normal(51).astype(np.float32)]), LANES)
OTHERS = FLOATS[::-1].copy()


def toward_zero(x: np.ndarray) -> np.ndarray:
    """The bits of f32 values as f16, rounded towards zero."""
    with np.errstate(over="ignore"):
        half = x.astype(np.float16)
    above = np.abs(half.astype(np.float32)) > np.abs(x)
    return (half.view(np.uint16) - above).astype(np.uint32)


def normalised(x: np.ndarray, least: float, most: int) -> np.ndarray:
    """Values of [least, 1] as 16-bit integers up to `most`."""
    scaled = np.rint(np.clip(x, np.float32(least), np.float32(1)) * np.float32(most))
    return scaled.astype(np.int32).astype(np.uint32) & 0xFFFF


def test_conversions_to_pairs(any_engine: Engine) -> None:
    def found(name: str) -> np.ndarray:
        return execute(any_engine, f"{name} v20, v10, v11", [FLOATS, OTHERS])[0]

    def pair(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return low | high << np.uint32(16)

    np.testing.assert_array_equal(
        found("v_cvt_pkrtz_f16_f32_e64"), pair(toward_zero(FLOATS), toward_zero(OTHERS))
    )
    for name, least, most in (("i16", -1, 32767), ("u16", 0, 65535)):
        wanted = pair(normalised(FLOATS, least, most), normalised(OTHERS, least, most))
        np.testing.assert_array_equal(found(f"v_cvt_pknorm_{name}_f32"), wanted)


def test_offsets_of_four_bits(any_engine: Engine) -> None:
    result = execute(any_engine, "v_cvt_off_f32_i4_e32 v20, v10", [A])[0].view(np.float32)
    signed = ((A & 15).astype(np.int32) ^ 8) - 8
    np.testing.assert_array_equal(result, signed.astype(np.float32) / 16)


@pytest.mark.parametrize("active", [(1 << 64) - 1, 0x0F0F_1234_5678_9ABC])
def test_exchange(any_engine: Engine, active: int) -> None:
    lines = ["v_mov_b32_e32 v20, v10", "v_mov_b32_e32 v21, v11"]
    lines += [
        f"s_mov_b32 exec_lo, {active & 0xFFFFFFFF:#x}",
        f"s_mov_b32 exec_hi, {active >> 32:#x}",
    ]
    setup = "\n\t".join(lines)
    result = execute(any_engine, "v_swap_b32 v20, v21", [A, B], 2, setup)
    lanes = np.array([bool(active >> i & 1) for i in range(LANES)])
    np.testing.assert_array_equal(result, [np.where(lanes, B, A), np.where(lanes, A, B)])


@pytest.mark.parametrize("table", [0x00, 0x96, 0xCA, 0xE8, 0x17, 0x5A])
@pytest.mark.parametrize("bits", [16, 32])
def test_any_function_of_three_bits(any_engine: Engine, bits: int, table: int) -> None:
    text = instruction_text(f"v_bitop3_b{bits} v20, v10, v11, v12 bitop3:{table:#x}", 3)
    result = np.zeros((1, LANES), np.uint32)
    run(any_engine, text.replace("gfx942", "gfx950"), (1,), [np.stack([A, B, C]), result])
    wanted = np.zeros(LANES, np.uint32)
    for i in range(8):
        term = (A if i & 4 else ~A) & (B if i & 2 else ~B) & (C if i & 1 else ~C)
        wanted |= term if table >> i & 1 else np.uint32(0)
    np.testing.assert_array_equal(result[0], wanted & np.uint32((1 << bits) - 1))
