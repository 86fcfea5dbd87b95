"""Single instructions against numpy, on every instruction set of the host."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.sim.support import execute

WORDS = hnp.arrays(np.uint32, 64, elements=st.integers(0, 2**32 - 1))
FLOATS = hnp.arrays(
    np.float32,
    64,
    elements=st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False),
)
HALVES = hnp.arrays(np.float16, 128, elements=st.floats(-1000, 1000, width=16))
few = settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

RNG = np.random.default_rng(0)
A, B, C = RNG.integers(0, 2**32, (3, 64), dtype=np.uint32)
FA, FB, FC = RNG.standard_normal((3, 64)).astype(np.float32)


def signed(words):
    return np.asarray(words, np.uint32).view(np.int32)


def i64(words):
    return signed(words).astype(np.int64)


def low(words):
    return words & 0xFFFF


def low_signed(words):
    return low(words).astype(np.uint16).view(np.int16).astype(np.int64)


def high_signed(words):
    return low_signed(words >> 16)


def pack(lower, upper):
    lower, upper = np.asarray(lower).astype(np.int64), np.asarray(upper).astype(np.int64)
    return ((lower & 0xFFFF) | (upper & 0xFFFF) << 16).astype(np.uint32)


def clip16(x):
    return np.clip(x, -32768, 32767)


def median(a, b, c):
    return np.sort(np.stack([a, b, c]), axis=0)[1]


BINARY = {
    "v_add_u32_e32": lambda a, b: a + b,
    "v_sub_u32_e32": lambda a, b: a - b,
    "v_subrev_u32_e32": lambda a, b: b - a,
    "v_and_b32_e32": lambda a, b: a & b,
    "v_or_b32_e32": lambda a, b: a | b,
    "v_xor_b32_e32": lambda a, b: a ^ b,
    "v_lshlrev_b32_e32": lambda a, b: b << (a & 31),
    "v_lshrrev_b32_e32": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32_e32": lambda a, b: signed(b) >> signed(a & 31),
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: (a.astype(np.uint64) * b.astype(np.uint64)) >> np.uint64(32),
    "v_mul_hi_i32": lambda a, b: (i64(a) * i64(b)) >> 32,
    "v_mul_u32_u24_e32": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_max_i32_e32": lambda a, b: np.maximum(signed(a), signed(b)),
    "v_min_u32_e32": np.minimum,
    "v_add_u16_e32": lambda a, b: low(a + b),
    "v_max_i16_e32": lambda a, b: low(np.maximum(low_signed(a), low_signed(b))),
    "v_lshlrev_b16_e32": lambda a, b: low(b << (a & 15)),
    "v_ashrrev_i16_e32": lambda a, b: low(low_signed(b) >> (a & 15).astype(np.int64)),
    "v_pk_add_u16": lambda a, b: pack(a + b, (a >> 16) + (b >> 16)),
    "v_pk_sub_i16": lambda a, b: pack(
        low_signed(a) - low_signed(b), high_signed(a) - high_signed(b)
    ),
    "v_pk_mul_lo_u16": lambda a, b: pack(low(a) * low(b), (a >> 16) * (b >> 16)),
    "v_pk_max_i16": lambda a, b: pack(
        np.maximum(low_signed(a), low_signed(b)), np.maximum(high_signed(a), high_signed(b))
    ),
    "v_pk_min_u16": lambda a, b: pack(np.minimum(low(a), low(b)), np.minimum(a >> 16, b >> 16)),
    "v_pk_ashrrev_i16": lambda a, b: pack(
        low_signed(b) >> low_signed(a & 15), high_signed(b) >> low_signed((a >> 16) & 15)
    ),
    "v_cvt_pk_i16_i32": lambda a, b: pack(clip16(signed(a)), clip16(signed(b))),
    "v_bfm_b32": lambda a, b: ((np.uint32(1) << (a & 31)) - np.uint32(1)) << (b & 31),
    "v_bcnt_u32_b32": lambda a, b: np.bitwise_count(a) + b,
}

TERNARY = {
    "v_and_or_b32": lambda a, b, c: (a & b) | c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_bfi_b32": lambda a, b, c: (a & b) | (~a & c),
    "v_bfe_u32": lambda a, b, c: (a >> (b & 31)) & ((np.uint32(1) << (c & 31)) - np.uint32(1)),
    "v_mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_med3_i32": lambda a, b, c: median(signed(a), signed(b), signed(c)),
    "v_max3_u32": lambda a, b, c: np.maximum(np.maximum(a, b), c),
    "v_alignbit_b32": lambda a, b, c: (
        ((a.astype(np.uint64) << np.uint64(32)) | b) >> (c & 31).astype(np.uint64)
    ),
    "v_mad_i32_i16": lambda a, b, c: low_signed(a) * low_signed(b) + i64(c),
    "v_mad_u16": lambda a, b, c: low(a * b + c),
    "v_med3_i16": lambda a, b, c: low(median(low_signed(a), low_signed(b), low_signed(c))),
    "v_min3_u16": lambda a, b, c: np.minimum(np.minimum(low(a), low(b)), low(c)),
    "v_pk_mad_u16": lambda a, b, c: pack(a * b + c, (a >> 16) * (b >> 16) + (c >> 16)),
    "v_dot2_i32_i16": lambda a, b, c: (
        low_signed(a) * low_signed(b) + high_signed(a) * high_signed(b) + i64(c)
    ),
    "v_sad_u32": lambda a, b, c: np.maximum(a, b) - np.minimum(a, b) + c,
}


def as_words(expected):
    return (np.asarray(expected).astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)


@pytest.mark.parametrize("name", BINARY)
def test_binary(any_engine, name):
    result = execute(any_engine, f"{name} v20, v10, v11", [A, B])
    np.testing.assert_array_equal(result[0], as_words(BINARY[name](A, B)))


@pytest.mark.parametrize("name", TERNARY)
def test_ternary(any_engine, name):
    result = execute(any_engine, f"{name} v20, v10, v11, v12", [A, B, C])
    np.testing.assert_array_equal(result[0], as_words(TERNARY[name](A, B, C)))


@few
@given(WORDS, WORDS)
def test_dot4_matches_bytes(any_engine, a, b):
    result = execute(any_engine, "v_dot4_i32_i8 v20, v10, v11, v12", [a, b, C])
    bytes_a, bytes_b = (x.view(np.int8).reshape(64, 4).astype(np.int64) for x in (a, b))
    np.testing.assert_array_equal(result[0], as_words((bytes_a * bytes_b).sum(1) + i64(C)))


FLOAT_BINARY = {
    "v_add_f32_e32": np.add,
    "v_sub_f32_e32": np.subtract,
    "v_mul_f32_e32": np.multiply,
    "v_max_f32_e32": np.fmax,
    "v_min_f32_e32": np.fmin,
}


@pytest.mark.parametrize("name", FLOAT_BINARY)
@few
@given(FLOATS, FLOATS)
def test_float_binary(any_engine, name, a, b):
    result = execute(any_engine, f"{name} v20, v10, v11", [a, b])
    with np.errstate(all="ignore"):
        expected = FLOAT_BINARY[name](a, b)
    np.testing.assert_array_equal(result[0].view(np.float32), expected)


def test_fma_rounds_once(any_engine):
    a = np.full(64, 1 + 2**-12, np.float32)
    c = np.full(64, -(1 + 2**-11), np.float32)
    result = execute(any_engine, "v_fma_f32 v20, v10, v10, v11", [a, c])
    np.testing.assert_array_equal(result[0].view(np.float32), np.float32(2**-24))


@few
@given(HALVES, HALVES)
def test_packed_half(any_engine, a, b):
    result = execute(
        any_engine, "v_pk_mul_f16 v20, v10, v11", [a.view(np.uint32), b.view(np.uint32)]
    )
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(result[0].view(np.float16), a * b)


def test_packed_half_selects_and_negates(any_engine):
    a, b = RNG.standard_normal((2, 128)).astype(np.float16)
    instruction = "v_pk_add_f16 v20, v10, v11 op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[0,1]"
    result = execute(any_engine, instruction, [a.view(np.uint32), b.view(np.uint32)])
    pairs, others = a.reshape(64, 2), b.reshape(64, 2)
    expected = np.stack([pairs[:, 1] - others[:, 0], pairs[:, 0] + others[:, 1]], axis=1)
    np.testing.assert_array_equal(result[0].view(np.float16).reshape(64, 2), expected)


def test_dot2_of_bf16(any_engine):
    a, b = (RNG.integers(-8, 8, (2, 64, 2))).astype(np.float32)
    words = [pack(*(x[:, i].view(np.uint32) >> 16 for i in range(2))) for x in (a, b)]
    result = execute(any_engine, "v_dot2_f32_bf16 v20, v10, v11, v12", [*words, FC], arch="gfx950")
    expected = (a * b).sum(1) + FC
    np.testing.assert_allclose(result[0].view(np.float32), expected, rtol=1e-6, atol=1e-6)


TRANSCENDENTAL = {
    "v_exp_f32_e32": (np.exp2, np.linspace(-20, 20, 64)),
    "v_log_f32_e32": (np.log2, np.geomspace(1e-30, 1e30, 64)),
    "v_rcp_f32_e32": (lambda x: 1 / x, np.linspace(-9, 10, 64)),
    "v_rsq_f32_e32": (lambda x: 1 / np.sqrt(x), np.geomspace(1e-10, 1e10, 64)),
    "v_sqrt_f32_e32": (np.sqrt, np.geomspace(1e-10, 1e10, 64)),
    "v_sin_f32_e32": (lambda x: np.sin(2 * np.pi * x), np.linspace(-3, 3, 64)),
    "v_cos_f32_e32": (lambda x: np.cos(2 * np.pi * x), np.linspace(-3, 3, 64)),
}


@pytest.mark.parametrize("name", TRANSCENDENTAL)
def test_transcendental(any_engine, name):
    function, x = TRANSCENDENTAL[name]
    x = x.astype(np.float32)
    result = execute(any_engine, f"{name} v20, v10", [x])[0].view(np.float32)
    np.testing.assert_allclose(result, function(x.astype(np.float64)), rtol=2e-7, atol=2e-7)


@few
@given(FLOATS)
def test_conversions(any_engine, x):
    with np.errstate(all="ignore"):
        halves = x.astype(np.float16)
    result = execute(any_engine, "v_cvt_f16_f32_e32 v20, v10", [x])[0]
    np.testing.assert_array_equal(result, halves.view(np.uint16))
    back = execute(any_engine, "v_cvt_f32_f16_e32 v20, v10", [result])[0].view(np.float32)
    np.testing.assert_array_equal(back, halves.astype(np.float32))
    integers = execute(any_engine, "v_cvt_i32_f32_e32 v20, v10", [x])[0].view(np.int32)
    expected = np.clip(np.trunc(x.astype(np.float64)), -(2**31), 2**31 - 1).astype(np.int64)
    np.testing.assert_array_equal(integers, expected)


COMPARES = {
    "lt": np.less,
    "eq": np.equal,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("relation", COMPARES)
@pytest.mark.parametrize("kind", ["u32", "i32", "f32"])
def test_compares(any_engine, relation, kind):
    a, b = (FA, np.where(FB > 0, FA, FB)) if kind == "f32" else (A, np.where(B & 1, A, B))
    after = "v_mov_b32_e32 v20, s8\n\tv_mov_b32_e32 v21, s9"
    words = execute(
        any_engine, f"v_cmp_{relation}_{kind}_e64 s[8:9], v10, v11", [a, b], outputs=2, after=after
    )
    bits = int(words[0][0]) | int(words[1][0]) << 32
    x, y = (signed(a), signed(b)) if kind == "i32" else (a, b)
    assert bits == sum(int(c) << i for i, c in enumerate(COMPARES[relation](x, y)))


@pytest.mark.parametrize(
    "template",
    [
        "v_pk_add_f32 v[20:21], v[10:11], {pair} op_sel_hi:[1,0] neg_lo:[0,1] neg_hi:[0,1]",
        "v_pk_fma_f32 v[20:21], {pair}, v[10:11], v[10:11] op_sel:[1,0,0] neg_lo:[1,0,1]",
        "v_fma_f32 v20, -v10, {word}, v11",
        "v_fma_f32 v20, v10, |v11|, -{word}",
        "v_fma_f16 v20, v10, -v11, {word}",
        "v_fma_f16 v20, -{word}, v11, v10",
        "v_med3_f16 v20, {word}, -v11, |v10|",
        "v_div_fixup_f32 v20, v10, -{word}, v11",
        "v_lshl_add_u64 v[20:21], v[10:11], 3, {pair}",
        "v_mad_u64_u32 v[20:21], s[12:13], v10, {word}, v[10:11]",
        "v_mad_i64_i32 v[20:21], s[12:13], {word}, v11, v[10:11]",
        "v_perm_b32 v20, v10, v11, {word}",
        "v_mov_b32_e32 v20, {word}",
        "v_sub_u32_e32 v20, {word}, v10",
        "v_sub_u32_e64 v20, v10, {word}",
        "v_fma_f32 v20, {word}, v10, v11",
        "v_fma_f32 v20, v10, {word}, v11",
        "v_fma_f32 v20, v10, v11, {word}",
        "v_fma_f32 v20, {word}, v10, {word}",
        "v_div_scale_f32 v20, vcc, {word}, v10, {word}",
        "v_div_fixup_f32 v20, v10, v11, {word}",
        "v_lshlrev_b64 v[20:21], {word}, v[10:11]",
        "v_lshl_add_u64 v[20:21], {pair}, 3, v[10:11]",
        "v_lshl_add_u64 v[20:21], v[10:11], {word}, v[10:11]",
        "v_addc_co_u32_e64 v20, vcc, v10, v11, s[10:11]",
    ],
)
def test_a_scalar_source_is_like_a_row_of_it(any_engine, template):
    setup = """
	s_mov_b32 s8, 0xc0d03c01
	s_mov_b32 s9, 0x40490fdb
	s_mov_b32 s10, 0x55aa0ff0
	s_mov_b32 s11, 0x12345678
	v_mov_b32_e32 v14, s8
	v_mov_b32_e32 v15, s9"""
    scalar, vector = (
        execute(any_engine, template.format(word=word, pair=pair), [FA, FB], 2, setup)
        for word, pair in (("s8", "s[8:9]"), ("v14", "v[14:15]"))
    )
    np.testing.assert_array_equal(scalar, vector)
    assert (scalar[0] != 0x7FC0DEAD).all()


DIVISION = """v_div_scale_f32 v12, s[8:9], v11, v11, v10
	v_div_scale_f32 v13, vcc, v10, v11, v10
	v_rcp_f32_e32 v14, v12
	v_fma_f32 v15, -v12, v14, 1.0
	v_fma_f32 v14, v15, v14, v14
	v_mul_f32_e32 v15, v13, v14
	v_fma_f32 v16, -v12, v15, v13
	v_fma_f32 v15, v16, v14, v15
	v_fma_f32 v12, -v12, v15, v13
	v_div_fmas_f32 v12, v12, v14, v15
	v_div_fixup_f32 v20, v12, v11, v10"""


@pytest.mark.parametrize("exponents", [(-43, 43), (-46, -42), (43, 47), (-60, 60)])
@pytest.mark.parametrize("special", [None, 0.0, np.inf, np.nan, 2.0**100, 2.0**-100])
def test_division_is_exact_whatever_else_is_in_the_row(any_engine, exponents, special):
    """Rows with nothing special take a short way; a lane that needs care must not change others."""
    low_exponent, high_exponent = exponents
    powers = RNG.integers(low_exponent, high_exponent + 1, (2, 64))
    n, d = (np.ldexp(v, p).astype(np.float32) for v, p in zip((FA, FB), powers, strict=True))
    if special is not None:
        n[5], d[40] = special, special
    with np.errstate(all="ignore"):
        expected = n / d
    result = execute(any_engine, DIVISION, [n, d])[0].view(np.float32)
    np.testing.assert_array_equal(result, expected)


def test_power_of_two_at_its_limits(any_engine):
    """Denormal results are zero, large ones infinite; NaN passes as it is."""
    x = np.float32([-np.inf, -1e30, -127, -126.5, -126, -1, -0.0, 0.0, 1, 127, 128, 1e30, np.inf])
    words = np.concatenate([x.view(np.uint32), np.uint32([0x7FC01234, 0xFFC00001])])
    result = execute(any_engine, "v_exp_f32_e32 v20, v10", [np.resize(words, 64)])[0]
    powers = np.float32([0, 0, 0, 0, 2.0**-126, 0.5, 1, 1, 2, 2.0**127, np.inf, np.inf, np.inf])
    expected = np.concatenate([powers.view(np.uint32), words[-2:]])
    np.testing.assert_array_equal(result, np.resize(expected, 64))


def test_inactive_lanes_keep_their_value(any_engine):
    setup = "s_mov_b64 exec, 0x5555"
    result = execute(any_engine, "v_add_u32_e32 v20, v10, v11", [A, B], setup=setup)[0]
    active = np.array([bool(0x5555 >> i & 1) for i in range(64)])
    np.testing.assert_array_equal(result, np.where(active, A + B, 0x7FC0DEAD))


@pytest.mark.parametrize(
    ("control", "lanes"),
    [
        ("quad_perm:[1,0,3,2]", lambda i: i ^ 1),
        ("row_ror:4", lambda i: (i & ~15) | ((i - 4) & 15)),
        ("row_mirror", lambda i: (i & ~15) | (15 - (i & 15))),
        ("row_half_mirror", lambda i: (i & ~7) | (7 - (i & 7))),
        ("row_newbcast:3", lambda i: (i & ~15) | 3),
    ],
)
def test_dpp(any_engine, control, lanes):
    instruction = f"v_add_u32_dpp v20, v10, v11 {control} row_mask:0xf bank_mask:0xf"
    result = execute(any_engine, instruction, [A, B])[0]
    np.testing.assert_array_equal(result, A[lanes(np.arange(64))] + B)


def test_dpp_without_a_source_lane_does_not_write(any_engine):
    instruction = "v_mov_b32_dpp v20, v10 row_shr:1 row_mask:0xf bank_mask:0xf"
    result = execute(any_engine, instruction, [A])[0]
    first = np.arange(64) % 16 == 0
    np.testing.assert_array_equal(result, np.where(first, 0x7FC0DEAD, np.roll(A, 1)))
    zeroed = execute(any_engine, instruction + " bound_ctrl:0", [A])[0]
    np.testing.assert_array_equal(zeroed, np.where(first, 0, np.roll(A, 1)))


def test_sdwa_selects_and_preserves(any_engine):
    instruction = (
        "v_add_u32_sdwa v20, v10, sext(v11) dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE "
        "src0_sel:BYTE_1 src1_sel:WORD_1"
    )
    result = execute(any_engine, instruction, [A, B])[0]
    total = ((A >> 8) & 0xFF).astype(np.int64) + high_signed(B)
    expected = (0x7FC0DEAD & ~0xFF0000) | ((total & 0xFF) << 16)
    np.testing.assert_array_equal(result, expected)


def test_float_modifiers_and_clamp(any_engine):
    result = execute(any_engine, "v_add_f32_e64 v20, -v10, |v11| clamp", [FA, FB])[0]
    expected = np.clip(-FA + np.abs(FB), 0, 1)
    np.testing.assert_array_equal(result.view(np.float32), expected)
    scaled = execute(any_engine, "v_mul_f32_e64 v20, v10, v11 mul:4", [FA, FB])[0]
    np.testing.assert_array_equal(scaled.view(np.float32), FA * FB * 4)


def test_integer_clamp_saturates(any_engine):
    result = execute(any_engine, "v_sub_u32_e64 v20, v10, v11 clamp", [A, B])[0]
    np.testing.assert_array_equal(result, np.where(A > B, A - B, 0))


def test_literals_and_inline_constants(any_engine):
    np.testing.assert_array_equal(
        execute(any_engine, "v_mul_f32_e32 v20, 0.5, v10", [FA])[0].view(np.float32), FA / 2
    )
    result = execute(any_engine, "v_lshl_add_u64 v[20:21], v[10:11], 2, -1", [A, B], outputs=2)
    wide = (A.astype(np.uint64) | B.astype(np.uint64) << np.uint64(32)) * np.uint64(4) - np.uint64(
        1
    )
    np.testing.assert_array_equal(result[0] | result[1].astype(np.uint64) << np.uint64(32), wide)


@pytest.mark.parametrize("selection", ["", "op_sel_hi:[1,0]", "op_sel:[0,1]"])
def test_an_inline_constant_stands_in_both_halves_of_a_pair(any_engine, selection):
    """Compilers fold a pair of equal constants with and without op_sel_hi."""
    text = f"v_pk_add_f32 v[20:21], v[10:11], 1.0 {selection} neg_lo:[1,0] neg_hi:[1,0]"
    actual = execute(any_engine, text, [FA, FB], outputs=2)
    np.testing.assert_array_equal(actual.view(np.float32), [1 - FA, 1 - FB])


def test_64_bit_arithmetic(any_engine):
    result = execute(any_engine, "v_mad_u64_u32 v[20:21], vcc, v10, v11, 0", [A, B], outputs=2)
    wide = A.astype(np.uint64) * B.astype(np.uint64)
    np.testing.assert_array_equal(result[0] | result[1].astype(np.uint64) << np.uint64(32), wide)


def test_permutes(any_engine):
    lanes = RNG.permutation(64).astype(np.uint32)
    result = execute(any_engine, "ds_bpermute_b32 v20, v10, v11", [lanes * 4, A])[0]
    np.testing.assert_array_equal(result, A[lanes])
    result = execute(any_engine, "ds_permute_b32 v20, v10, v11", [lanes * 4, A])[0]
    np.testing.assert_array_equal(result[lanes], A)
    result = execute(any_engine, "ds_swizzle_b32 v20, v10 offset:swizzle(SWAP,16)", [A])[0]
    np.testing.assert_array_equal(result, A[np.arange(64) ^ 16])


def test_byte_permute(any_engine):
    result = execute(any_engine, "v_perm_b32 v20, v10, v11, v12", [A, B, np.full(64, 0x07000C0D)])
    expected = ((A >> 24) << 24) | ((B & 0xFF) << 16) | 0x00FF
    np.testing.assert_array_equal(result[0], expected)


def matrix(values, rows):
    return np.asarray(values, np.float32).reshape(64, rows).T.copy()


def test_matrix_layout(any_engine):
    """A row = lane % 16, k = 4 (lane / 16) + e; D row = 4 (lane / 16) + r, column = lane % 16."""
    a = RNG.integers(-4, 5, (16, 4)).astype(np.float32)
    b = RNG.integers(-4, 5, (4, 16)).astype(np.float32)
    lane = np.arange(64)
    words = [a[lane % 16, lane // 16], b[lane // 16, lane % 16]]
    instruction = "v_mfma_f32_16x16x4_f32 v[20:23], v10, v11, 0"
    result = execute(any_engine, instruction, words, outputs=4).view(np.float32)
    product = a @ b
    for r in range(4):
        np.testing.assert_array_equal(result[r], product[4 * (lane // 16) + r, lane % 16])


def test_matrix_of_blocks(any_engine):
    """4x4x1, 16 blocks: A row = lane % 4 of block lane / 4; D row = register."""
    lane = np.arange(64)
    instruction = "v_mfma_f32_4x4x1_16b_f32 v[20:23], v10, v11, v[12:15]"
    c = RNG.standard_normal((4, 64)).astype(np.float32)
    result = execute(any_engine, instruction, [FA, FB, *c], outputs=4).view(np.float32)
    for r in range(4):
        expected = FA[4 * (lane // 4) + r] * FB + c[r]
        np.testing.assert_allclose(result[r], expected, rtol=1e-6, atol=1e-6)
