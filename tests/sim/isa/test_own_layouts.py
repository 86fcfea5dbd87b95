"""Operations whose manual's pseudo-code cannot be translated, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gym.sim.engine.engine import Engine
from tests.sim.support import LANES, execute, instruction_text, kernel_text, run

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
    def computed(name: str) -> np.ndarray:
        return execute(any_engine, f"{name} v20, v10, v11", [FLOATS, OTHERS])[0]

    def pair(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return low | high << np.uint32(16)

    np.testing.assert_array_equal(
        computed("v_cvt_pkrtz_f16_f32_e64"), pair(toward_zero(FLOATS), toward_zero(OTHERS))
    )
    for name, least, most in (("i16", -1, 32767), ("u16", 0, 65535)):
        wanted = pair(normalised(FLOATS, least, most), normalised(OTHERS, least, most))
        np.testing.assert_array_equal(computed(f"v_cvt_pknorm_{name}_f32"), wanted)


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


SPECIAL_BITS = {
    16: [0, 1, 0x3FF, 0x400, 0x3C00, 0x7BFF, 0x7C00, 0x7C01, 0x7DFF, 0x7E00, 0x7FFF],
    32: [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000],
    64: [0, 1, (1 << 52) - 1, 1 << 52, 0x3FF << 52, 0x7FF << 52, 0x7FF << 52 | 1, 0x7FF8 << 48],
}


def class_of(bits: int, size: int) -> int:
    """The number of a float's class, as the manual's table of V_CMP_CLASS counts them."""
    mantissa = {16: 10, 32: 23, 64: 52}[size]
    sign, rest = bits >> size - 1, bits & (1 << size - 1) - 1
    infinity = ((1 << size - 1 - mantissa) - 1) << mantissa
    if rest > infinity:
        return rest >> mantissa - 1 & 1
    if rest == infinity:
        return 2 if sign else 9
    if rest >> mantissa:
        return 3 if sign else 8
    if rest:
        return 4 if sign else 7
    return 5 if sign else 6


@pytest.mark.parametrize("size", [16, 32, 64])
@pytest.mark.parametrize("form", ["cmp", "cmpx"])
def test_classes_of_floats(any_engine: Engine, form: str, size: int) -> None:
    special = [bits | sign << size - 1 for bits in SPECIAL_BITS[size] for sign in (0, 1)]
    values = np.resize(np.array(special, np.uint64), LANES)
    rows = [values.astype(np.uint32), (values >> np.uint64(32)).astype(np.uint32), B]
    source = "v[10:11]" if size == 64 else "v10"
    active = 0xF0F0_1234_5678_9ABC
    setup = f"s_mov_b32 exec_lo, {active & 0xFFFFFFFF:#x}\n\ts_mov_b32 exec_hi, {active >> 32:#x}"
    text = f"v_{form}_class_f{size}_e64 s[20:21], {source}, v12"
    after = "s_mov_b64 s[22:23], exec\n\ts_mov_b64 exec, -1"
    for i, name in enumerate(("s20", "s21", "s22", "s23")):
        after += f"\n\tv_mov_b32_e32 v{20 + i}, {name}"
    actual = execute(any_engine, text, rows, 4, setup, after)[:, 0]
    wanted = sum(
        (int(B[lane]) >> class_of(int(values[lane]), size) & active >> lane & 1) << lane
        for lane in range(LANES)
    )
    assert int(actual[0]) | int(actual[1]) << 32 == wanted
    executed = int(actual[2]) | int(actual[3]) << 32
    assert executed == (wanted if form == "cmpx" else active)


def test_masked_sums_of_differences(any_engine: Engine) -> None:
    reference = B & RNG.choice(np.array([0xFF, 0xFF00FF, 0xFFFFFFFF], np.uint32), LANES)
    text = "v_mqsad_u32_u8_e64 v[20:23], v[10:11], v12, v[14:17]"
    sums = RNG.integers(0, 1 << 31, (4, LANES), dtype=np.uint32)
    actual = execute(any_engine, text, [A, C, reference, A, *sums], 4)
    window = A.astype(np.uint64) | C.astype(np.uint64) << np.uint64(32)
    for i in range(4):
        wanted = sums[i].astype(np.int64)
        for byte in range(4):
            theirs = (reference >> np.uint32(8 * byte) & np.uint32(255)).astype(np.int64)
            ours = (window >> np.uint64(8 * (i + byte)) & np.uint64(255)).astype(np.int64)
            wanted += np.where(theirs != 0, np.abs(ours - theirs), 0)
        np.testing.assert_array_equal(actual[i], wanted.astype(np.uint32))


def test_a_byte_of_four(any_engine: Engine) -> None:
    values = RNG.choice(np.array([-3, 0, 0.4, 1.6, 7, 254.7, 255, 300], np.float32), LANES)
    actual = execute(any_engine, "v_cvt_pkaccum_u8_f32_e64 v20, v10, v11", [values, B])[0]
    byte = np.clip(np.rint(values), 0, 255).astype(np.uint32)
    place = (B & np.uint32(3)) * np.uint32(8)
    np.testing.assert_array_equal(actual, 0x7FC0DEAD & ~(np.uint32(255) << place) | byte << place)


@pytest.mark.parametrize(("name", "least", "most"), [("i16", -1, 32767), ("u16", 0, 65535)])
def test_halves_as_shares_of_integers(
    any_engine: Engine, name: str, least: float, most: int
) -> None:
    halves, others = (np.clip(x, -60000, 60000).astype(np.float16) for x in (FLOATS, OTHERS))
    rows = [x.view(np.uint16).astype(np.uint32) for x in (halves, others)]
    low, high = (normalised(x.astype(np.float32), least, most) for x in (halves, others))
    actual = execute(any_engine, f"v_cvt_pknorm_{name}_f16 v20, v10, v11", rows)[0]
    np.testing.assert_array_equal(actual, low | high << np.uint32(16))
    actual = execute(any_engine, f"v_cvt_norm_{name}_f16_e32 v20, v10", rows)[0]
    np.testing.assert_array_equal(actual & 0xFFFF, low)


def test_older_exponentials_and_logarithms(any_engine: Engine) -> None:
    x = RNG.uniform(-100, 100, LANES).astype(np.float32)
    actual = execute(any_engine, "v_exp_legacy_f32_e32 v20, v10", [x])[0].view(np.float32)
    np.testing.assert_allclose(actual, np.exp2(x.astype(np.float64)), rtol=2.5e-7)
    x = RNG.uniform(1e-6, 1e6, LANES).astype(np.float32)
    actual = execute(any_engine, "v_log_legacy_f32_e32 v20, v10", [x])[0].view(np.float32)
    np.testing.assert_allclose(actual, np.log2(x.astype(np.float64)), rtol=2.5e-7, atol=1e-7)


@pytest.mark.parametrize(("kind", "dropped"), [("bf16", 16), ("f16", 13)])
def test_stochastic_halves(any_engine: Engine, kind: str, dropped: int) -> None:
    quarters = np.repeat(np.arange(4), LANES // 4).astype(np.uint32)
    kept = RNG.integers(0x3F80, 0x4080, LANES, dtype=np.uint32) << np.uint32(16)
    kept &= ~np.uint32((1 << dropped) - 1)
    values = (kept | quarters << np.uint32(dropped - 2)).view(np.float32)
    noise = np.tile(np.arange(16, dtype=np.uint32), 4) << np.uint32(28) | B >> np.uint32(4)
    text = instruction_text(f"v_cvt_sr_{kind}_f32 v20, v10, v11", 2).replace("gfx942", "gfx950")
    result = np.zeros((1, LANES), np.uint32)
    run(any_engine, text, (1,), [np.stack([values.view(np.uint32), noise]), result])
    low = kept.view(np.float32)
    if kind == "f16":
        low, actual = low.astype(np.float16).view(np.uint16), result[0] & 0xFFFF
    else:
        low, actual = kept >> np.uint32(16), result[0] & 0xFFFF
    up = actual.astype(np.int64) - low
    assert np.isin(up, (0, 1)).all()
    np.testing.assert_array_equal(up.reshape(4, 16).mean(1), np.arange(4) / 4)


def test_scalar_registers_by_index(any_engine: Engine) -> None:
    lines = ["s_load_dwordx2 s[4:5], s[0:1], 0x0", "v_lshlrev_b32_e32 v1, 2, v0"]
    lines += [f"s_mov_b32 s{20 + i}, {100 + i}" for i in range(12)] + ["s_mov_b32 m0, 4"]
    lines += ["s_movrels_b32 s40, s20", "s_movrels_b64 s[42:43], s[22:23]"]
    lines += ["s_movreld_b32 s24, s21", "s_movreld_b64 s[26:27], s[20:21]", "s_mov_b32 m0, 0"]
    lines += ["s_waitcnt lgkmcnt(0)"]
    read = [40, 42, 43, *range(20, 32)]
    for i, register in enumerate(read):
        lines += [f"v_mov_b32_e32 v2, s{register}"]
        lines += [f"global_store_dword v1, v2, s[4:5] offset:{256 * i}"]
    result = np.zeros((len(read), LANES), np.uint32)
    run(any_engine, kernel_text("\n".join(f"\t{line}" for line in lines)), (1,), [result])
    left = [*range(100, 108), 101, 109, 100, 101]
    assert result[:, 0].tolist() == [104, 106, 107, *left]


def test_vector_registers_by_index(any_engine: Engine) -> None:
    lines = ["v_mov_b32_e32 v20, 0", "v_mov_b32_e32 v21, 0", "s_mov_b32 s20, 1"]
    lines += ["s_set_gpr_idx_on s20, gpr_idx(SRC0)", "v_mov_b32_e32 v20, v10"]
    lines += ["s_mov_b32 s20, 2", "s_set_gpr_idx_idx s20"]
    lines += ["v_mov_b32_e32 v21, v10"]
    actual = execute(any_engine, "s_set_gpr_idx_off", [A, B, C], 2, "\n\t".join(lines))
    np.testing.assert_array_equal(actual, [B, C])
