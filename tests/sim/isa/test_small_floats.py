"""Conversions from and to floats of 4, 6 and 8 bits, against tables worked out from their formats.

The tables are those of the OCP specifications (8-bit floats 1.0, microscaling formats 1.0); those
of 8 bits agree with PyTorch's types. The scale is the power of two in an f32's exponent. The
manual does not define its helpers of stochastic rounding, so the tests assert the properties of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch

from kernel_gym.sim.engine.engine import Engine
from tests.sim.support import LANES, instruction_text, kernel_text, run

FIRST, SECOND, SCALE, OUT = 2, 34, 66, 70
SATURATE = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1"


@dataclass(frozen=True)
class Small:
    """A small float: bits of exponent and mantissa, and its largest finite code."""

    exponent: int
    mantissa: int
    largest: int

    @property
    def bits(self) -> int:
        """Of one value, the sign's included."""
        return 1 + self.exponent + self.mantissa

    def value(self, code: int) -> float:
        """The value of a code without its sign, also of codes above the largest value."""
        exponent, mantissa = divmod(code, 1 << self.mantissa)
        bias = (1 << self.exponent - 1) - 1
        whole = mantissa + (1 << self.mantissa if exponent else 0)
        return whole * 2.0 ** (max(exponent, 1) - bias - self.mantissa)


SMALL = {
    "fp8": Small(4, 3, 0x7E),
    "bf8": Small(5, 2, 0x7B),
    "fp6": Small(2, 3, 0x1F),
    "bf6": Small(3, 2, 0x1F),
    "fp4": Small(2, 1, 0x7),
}
WIDE = {"f32": 32, "f16": 16, "bf16": 16}
NAMES = [f"{to}_{small}" for to in ("f16", "f32") for small in ("fp8", "bf8")]
NAMES += [f"pk_{to}_{small}" for to in WIDE for small in ("fp8", "bf8", "fp4")]
NAMES += [f"pk_{small}_{source}" for source in WIDE for small in ("fp8", "bf8", "fp4")]
NAMES += [f"pk32_{to}_{small}" for to in WIDE for small in ("fp6", "bf6")]
NAMES += [f"pk32_{small}_{source}" for source in ("f16", "bf16") for small in ("fp6", "bf6")]
NAMES += [f"2xpk16_{small}_f32" for small in ("fp6", "bf6")]
STOCHASTIC = [f"sr_{small}_{source}" for source in WIDE for small in ("fp8", "bf8")]
STOCHASTIC += [f"sr_pk_fp4_{source}" for source in WIDE]
STOCHASTIC += [f"sr_pk32_{small}_{source}" for source in WIDE for small in ("fp6", "bf6")]


@cache
def table(kind: str) -> np.ndarray:
    """Values of all codes with the sign clear; NaN and infinity behind the largest."""
    small = SMALL[kind]
    values = [small.value(code) for code in range(1 << small.bits - 1)]
    values[small.largest + 1 :] = [np.nan] * (len(values) - small.largest - 1)
    if kind == "bf8":
        values[small.largest + 1] = np.inf
    return np.array(values)


def decoded(codes: np.ndarray, kind: str) -> np.ndarray:
    """The values of codes."""
    sign = 1 << SMALL[kind].bits - 1
    return np.where(codes & sign, -1.0, 1.0) * table(kind)[codes & sign - 1]


def encoded(x: np.ndarray, kind: str, saturate: bool) -> np.ndarray:
    """The nearest codes, ties to even; beyond the largest what the format has, or the largest."""
    small = SMALL[kind]
    above = small.largest + (0 if saturate or small.bits < 8 else 1)
    steps = np.array([small.value(code) for code in range(above + 1)])
    middles = (steps[1:] + steps[:-1]) / 2
    size = np.abs(x)
    code = np.searchsorted(middles, size, side="left")
    tie = (code < len(middles)) & (middles[np.minimum(code, len(middles) - 1)] == size)
    code = code + (tie & (code % 2 == 1))
    return code | np.where(np.signbit(x), 1 << small.bits - 1, 0)


def packed(codes: np.ndarray, bits: int) -> np.ndarray:
    """Elements side by side, (elements, lanes), as rows of 32-bit words."""
    flags = (codes[:, None, :] >> np.arange(bits)[None, :, None]) & 1
    flags = flags.reshape(-1, codes.shape[1])
    flags = np.pad(flags, ((0, -len(flags) % 32), (0, 0)))
    words = flags.reshape(-1, 32, codes.shape[1]) << np.arange(32)[None, :, None]
    return words.sum(1).astype(np.uint32)


def unpacked(words: np.ndarray, bits: int, count: int) -> np.ndarray:
    """The reverse of `packed`."""
    flags = (words[:, None, :].astype(np.int64) >> np.arange(32)[None, :, None]) & 1
    flags = flags.reshape(-1, words.shape[1])[: bits * count].reshape(count, bits, -1)
    return (flags << np.arange(bits)[None, :, None]).sum(1)


def narrowed(x: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Values as f32, f16 or bf16: their bits, and what they are worth."""
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[kind]
    worth = torch.from_numpy(np.asarray(x, np.float32)).to(dtype)
    size = torch.int32 if kind == "f32" else torch.int16
    mask = (1 << WIDE[kind]) - 1
    return worth.view(size).numpy().astype(np.int64) & mask, worth.double().numpy()


def parts_of(name: str) -> tuple[str, str, int]:
    """Where to, where from, and how many elements."""
    match = re.fullmatch(r"(?:sr_)?(?:(pk32|2xpk16|pk)_)?(\w+)_(\w+)", name)
    assert match
    return match[2], match[3], {None: 1, "pk": 2}.get(match[1], 32)


def registers(first: int, rows: int) -> str:
    """As the assembler writes them."""
    return f"v{first}" if rows == 1 else f"v[{first}:{first + rows - 1}]"


def convert(
    engine: Engine,
    name: str,
    sources: list[np.ndarray],
    scales: np.ndarray,
    rows: int,
    setup: str = "",
) -> np.ndarray:
    """Runs one conversion on rows of words; the destination starts as all bits set."""
    inputs = np.zeros((SCALE + 1, LANES), np.uint32)
    operands = []
    for first, source in zip((FIRST, SECOND), sources, strict=False):
        inputs[first : first + len(source)] = source
        operands.append(registers(first, len(source)))
    inputs[SCALE] = scales.astype(np.float32).view(np.uint32)
    lines = ["s_load_dwordx4 s[4:7], s[0:1], 0x0", "v_lshlrev_b32_e32 v1, 2, v0"]
    for i in range(FIRST, SCALE + 1):
        lines += ["s_waitcnt lgkmcnt(0)", f"s_add_u32 s8, s4, {256 * i}", "s_addc_u32 s9, s5, 0"]
        lines.append(f"global_load_dword v{i}, v1, s[8:9]")
    lines += [f"v_mov_b32_e32 v{OUT + i}, -1" for i in range(rows)]
    text = f"v_cvt_scalef32_{name} {registers(OUT, rows)}, {', '.join(operands)}, v{SCALE}"
    lines += ["s_waitcnt vmcnt(0)", setup, text]
    for i in range(rows):
        lines += [f"s_add_u32 s8, s6, {256 * i}", "s_addc_u32 s9, s7, 0"]
        lines.append(f"global_store_dword v1, v{OUT + i}, s[8:9]")
    kernel = kernel_text("\n".join(f"\t{line}" for line in lines if line), arguments=2)
    for old, new in (
        ("gfx942", "gfx950"),
        ("vgpr 64", "vgpr 112"),
        ("vgpr_count:     64", "vgpr_count:     112"),
        ("offset 64", "offset 112"),
    ):
        kernel = kernel.replace(old, new)
    result = np.zeros((rows, LANES), np.uint32)
    run(engine, kernel, (1,), [inputs, result])
    return result


def random_of(name: str) -> np.random.Generator:
    """Draws that are the same in every run."""
    return np.random.default_rng(list(name.encode()))


def drawn(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values to encode, some of them halfway between two codes: bits, worth, and scales."""
    rng = random_of(name)
    kind, source, count = parts_of(name)
    small = SMALL[kind]
    scales = 2.0 ** rng.integers(-3, 4, LANES)
    codes = rng.integers(0, small.largest, (count, LANES))
    low, high = np.vectorize(small.value)(codes), np.vectorize(small.value)(codes + 1)
    share = rng.choice([0, 0.25, 0.5, 0.75], (count, LANES))
    wide = rng.standard_normal((count, LANES)) * small.value(small.largest) * 1.5
    x = np.where(rng.random((count, LANES)) < 0.8, low + (high - low) * share, wide)
    x = np.clip(x * scales, -6e4, 6e4)  # finite in every type
    bits, worth = narrowed(x * rng.choice([-1, 1], x.shape), source)
    return bits, worth, scales


def test_tables_are_those_of_pytorch():
    codes = np.arange(256)
    for kind, dtype in (("fp8", torch.float8_e4m3fn), ("bf8", torch.float8_e5m2)):
        theirs = torch.arange(256).to(torch.uint8).view(dtype).double().numpy()
        np.testing.assert_array_equal(decoded(codes, kind), theirs)
    assert [table(kind)[-1] for kind in ("fp6", "bf6", "fp4")] == [7.5, 28, 6]


THEIRS = {
    ("fp8", "gfx942"): torch.float8_e4m3fnuz,
    ("bf8", "gfx942"): torch.float8_e5m2fnuz,
    ("fp8", "gfx950"): torch.float8_e4m3fn,
    ("bf8", "gfx950"): torch.float8_e5m2,
}


@pytest.mark.parametrize(("kind", "target"), THEIRS)
def test_plain_conversions_are_those_of_pytorch(any_engine: Engine, kind: str, target: str) -> None:
    def execute(name: str, rows: np.ndarray, outputs: int) -> np.ndarray:
        text = instruction_text(name, len(rows), outputs).replace("gfx942", target)
        result = np.zeros((outputs, LANES), np.uint32)
        run(any_engine, text, (1,), [rows, result])
        return result

    dtype = THEIRS[kind, target]
    codes = np.arange(256, dtype=np.uint32).reshape(4, LANES)
    values = torch.arange(256).to(torch.uint8).view(dtype).float().numpy().reshape(4, LANES)
    for word, wanted in zip(codes, values, strict=True):
        actual = execute(f"v_cvt_f32_{kind}_e32 v20, v10", word[None], 1)[0].view(np.float32)
        np.testing.assert_array_equal(actual, wanted)
        pair = word | word[::-1] << np.uint32(8)
        actual = execute(f"v_cvt_pk_f32_{kind}_e32 v[20:21], v10", pair[None], 2).view(np.float32)
        np.testing.assert_array_equal(actual, [wanted, wanted[::-1]])
    rng = random_of(kind + target)
    finite = np.sort(values[np.isfinite(values)])
    middles = np.resize((finite[1:] + finite[:-1]) / 2, 4 * LANES)
    wide = rng.standard_normal(4 * LANES) * rng.choice([0.01, 1, 300, 40000], 4 * LANES)
    wide = np.clip(wide, finite[0], finite[-1])  # beyond it PyTorch saturates in one format only
    x = np.concatenate([middles, wide]).astype(np.float32).reshape(8, LANES)
    wanted = torch.from_numpy(x).to(dtype).view(torch.uint8).numpy().astype(np.uint32)
    for row, other, low, high in zip(x, x[::-1], wanted, wanted[::-1], strict=True):
        rows = np.stack([row, other]).view(np.uint32)
        actual = execute(f"v_cvt_pk_{kind}_f32 v20, v10, v11", rows, 1)[0] & 0xFFFF
        np.testing.assert_array_equal(actual, low | high << np.uint32(8))


@pytest.mark.parametrize("name", [n for n in NAMES if parts_of(n)[1] in SMALL])
def test_small_floats_are_read(any_engine: Engine, name: str) -> None:
    to, kind, count = parts_of(name)
    rng = random_of(name)
    codes = rng.integers(0, 1 << SMALL[kind].bits, (count, LANES))
    scales = 2.0 ** rng.integers(-9, 10, LANES)
    rows = -(-count * WIDE[to] // 32)
    actual = convert(any_engine, name, [packed(codes, SMALL[kind].bits)], scales, rows)
    wanted, worth = narrowed(decoded(codes, kind) * scales, to)
    got = unpacked(actual, WIDE[to], count)
    sure = ~np.isnan(worth)
    np.testing.assert_array_equal(got[sure], wanted[sure])
    least = {"f32": 0x7F800000, "f16": 0x7C00, "bf16": 0x7F80}[to]
    assert np.all(got[~sure] & least == least)


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", [n for n in NAMES if parts_of(n)[0] in SMALL])
def test_small_floats_are_the_nearest_ones(any_engine: Engine, name: str, saturate: bool) -> None:
    kind, source, count = parts_of(name)
    bits, worth, scales = drawn(name)
    if name.startswith("2x") or (name.startswith("pk_") and source == "f32"):
        sources = [packed(bits[i::2], 32) for i in (0, 1)]
    else:
        sources = [packed(bits, WIDE[source])]
    rows = -(-count * SMALL[kind].bits // 32)
    setup = SATURATE if saturate else ""
    actual = convert(any_engine, name, sources, scales, rows, setup)
    wanted = encoded(worth / scales, kind, saturate)
    np.testing.assert_array_equal(unpacked(actual, SMALL[kind].bits, count), wanted)
    kept = 32 * rows - count * SMALL[kind].bits
    assert np.all(actual[-1] >> np.uint32(32 - kept) == (1 << kept) - 1 if kept else True)


@pytest.mark.parametrize(("target", "unit"), [("gfx942", 0.5), ("gfx950", 1.0)])
@pytest.mark.parametrize("kind", ["fp8", "bf8"])
def test_stochastic_rounding_without_scale(
    any_engine: Engine, kind: str, target: str, unit: float
) -> None:
    small, noise = SMALL[kind], np.arange(LANES, dtype=np.uint32) << np.uint32(26)
    text = instruction_text(f"v_cvt_sr_{kind}_f32 v20, v10, v11", 2).replace("gfx942", target)
    for code in (1, 2, 5, 8, 9, 60, small.largest - 1):  # fnuz formats: half of OCP's values
        low, high = unit * small.value(code), unit * small.value(code + 1)
        for quarters in range(4):
            x = np.full(LANES, -low - (high - low) * quarters / 4, np.float32)
            result = np.zeros((1, LANES), np.uint32)
            run(any_engine, text, (1,), [np.stack([x.view(np.uint32), noise]), result])
            up = (result[0] & 0xFF).astype(np.int64) - (128 + code)
            assert np.isin(up, (0, 1)).all()
            assert up.mean() == quarters / 4


@pytest.mark.parametrize("name", STOCHASTIC)
def test_stochastic_rounding_keeps_codes_and_means(any_engine: Engine, name: str) -> None:
    kind, source, count = parts_of(name)
    small, rng = SMALL[kind], random_of(name)
    rows = -(-count * small.bits // 32)
    code = rng.integers(1, small.largest - 1, (count, 1))
    low, high = np.vectorize(small.value)(code), np.vectorize(small.value)(code + 1)
    noise = np.arange(LANES, dtype=np.uint32) << np.uint32(26)  # all values of its upper bits
    noise |= rng.integers(0, 1 << 26, LANES, dtype=np.uint32)
    scales = np.full(LANES, 4.0)
    for quarters in range(4):
        x = np.broadcast_to(low + (high - low) * quarters / 4, (count, LANES)) * scales
        bits, _ = narrowed(x, source)
        sources = [packed(bits, WIDE[source]), noise[None]]
        actual = convert(any_engine, name, sources, scales, rows)
        up = unpacked(actual, small.bits, count) - code
        assert np.isin(up, (0, 1)).all()
        assert up[0].mean() == quarters / 4
