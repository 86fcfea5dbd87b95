"""Vector operations against the pseudo-code of AMD's manuals, on random bits and special values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernel_gym.sim.engine.engine import Engine
from tests.sim.isa import pcode, values
from tests.sim.isa.bench import Inputs, execute, expected, kind_of, make_inputs
from tests.sim.isa.forms import Form, forms
from tests.sim.isa.known import APPROXIMATE, ELSEWHERE, REFUSED, find

pytest.importorskip("tinygrad")

LANES_CHECKED = range(0, 64, 3)
FLOAT = {"F16": 16, "F32": 32, "F64": 64}


def checked(target: str) -> list[Form]:
    """The vector operations of a target whose expectation is pseudo-code."""
    return [
        form
        for form in forms()
        if target in form.texts
        and not form.scalar
        and not find(ELSEWHERE, form.name)
        and not find(REFUSED, form.name)
    ]


def as_float(bits: int, size: int) -> np.floating:
    return values.from_bits(bits, size)


def same(form: Form, actual: int, wanted: int) -> bool:
    """Whether a result is right: the bits, or nearly so for approximations; any NaN is a NaN."""
    if actual == wanted:
        return True
    size = FLOAT.get(form.formats.get("vdst", ""))
    halves = "PK2_F16" in form.formats.get("vdst", "")
    if halves:
        return all(_same_float(actual >> s & 0xFFFF, wanted >> s & 0xFFFF, 16, 0) for s in (0, 16))
    if size is None:
        return False
    return _same_float(actual, wanted, size, find(APPROXIMATE, form.name) or 0)


def _same_float(actual: int, wanted: int, size: int, tolerance: float) -> bool:
    if actual == wanted:
        return True
    mask = (1 << size) - 1
    if actual & ~mask:
        return False
    a, b = float(as_float(actual, size)), float(as_float(wanted, size))
    if math.isnan(a) and math.isnan(b):
        return True
    if not tolerance or not math.isfinite(a) or not math.isfinite(b):
        return False
    least = float(np.finfo(values.FLOATS[size]).tiny)  # approximations may flush denormals
    return abs(a - b) <= max(tolerance * max(1.0, abs(b)), 2 * least)


def wrong_lanes(form: Form, rows: np.ndarray, inputs: Inputs) -> str | None:
    """The first lane that an operation got wrong, described."""
    for lane in LANES_CHECKED:
        active = inputs.exec >> lane & 1
        want = expected(form, inputs, lane)
        mask = int(rows[0, 2]) | int(rows[0, 3]) << 32
        size = max(32, form.sizes.get("vdst", 32))
        actual = (int(rows[lane, 0]) | int(rows[lane, 1]) << 32) & ((1 << size) - 1)
        old = int(inputs.s[3, lane]) & ((1 << size) - 1)
        sources = [hex(int(inputs.s[i, lane])) for i in range(len(form.sources))]
        bit = want.bit if active else 0
        if want.bit is not None and (mask >> lane & 1) != bit:
            return f"lane {lane} of {sources}: mask bit {mask >> lane & 1}, expected {bit}"
        if want.destination is None:
            narrowed = int(rows[0, 0]) | int(rows[0, 1]) << 32
            if form.name.startswith("v_cmpx") and narrowed >> lane & 1 != bit:
                return f"lane {lane} of {sources}: EXEC is not the result"
            continue
        wanted = want.destination & ((1 << size) - 1) if active else old
        if not same(form, actual, wanted):
            return f"lane {lane} of {sources}: found {actual:#x}, expected {wanted:#x}"
    return None


def failures(engine: Engine, target: str, kind: str, seed: int) -> list[str]:
    """Returns the failures of a target's operations that take inputs of a kind."""
    chosen = [form for form in checked(target) if kind_of(form) == kind]
    inputs = make_inputs(kind, seed)
    actual = execute(engine, [form.texts[target] for form in chosen], inputs, target)
    wrong = []
    for form, rows in zip(chosen, actual, strict=True):
        problem = wrong_lanes(form, rows, inputs)
        if problem:
            wrong.append(f"{form.texts[target]}: {problem}")
    return wrong


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("kind", ["16", "32", "64"])
def test_manual(engine, kind, seed):
    wrong = failures(engine, "gfx950", kind, seed)
    assert not wrong, f"{len(wrong)} operations:\n" + "\n".join(wrong)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_manual_of_older_targets(engine, target):
    wrong = [x for kind in ("16", "32", "64") for x in failures(engine, target, kind, 3)]
    assert not wrong, f"{len(wrong)} operations:\n" + "\n".join(wrong)


@pytest.mark.parametrize("kind", ["16", "32", "64"])
def test_engines_agree_to_the_bit(any_engine, engine, kind):
    texts = [form.texts["gfx950"] for form in forms() if runs(form) and kind_of(form) == kind]
    for seed in (4, 5):
        inputs = make_inputs(kind, seed)
        actual = execute(any_engine, texts, inputs, "gfx950")
        wanted = execute(engine, texts, inputs, "gfx950")
        differ = (actual != wanted) & ~both_nan(actual, wanted)
        assert not differ.any(), [t for t, d in zip(texts, differ, strict=True) if d.any()]


def runs(form: Form) -> bool:
    """Whether an operation fits the kernel of the tests: small operands, no other registers."""
    return (
        "gfx950" in form.texts
        and not form.scalar
        and not find(REFUSED, form.name)
        and max(form.sizes.values()) <= 64
        and not form.name.startswith(("v_mfma", "v_smfma", "v_read", "v_write", "v_accvgpr"))
    )


def both_nan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two words are NaN of some kind: the payload is the host processor's choice."""

    def nan(x: np.ndarray) -> np.ndarray:
        half = ((x & 0x7FFF) > 0x7C00) | ((x >> 16 & 0x7FFF) > 0x7C00)
        return half | ((x & 0x7FFFFFFF) > 0x7F800000) | ((x & 0x7FF00000) == 0x7FF00000)

    return nan(a) & nan(b)


def test_a_wrong_expectation_is_found(engine, monkeypatch):
    monkeypatch.setitem(pcode.all_operations(), "v_xad_u32", "D0.u32 = (S0.u32 ^ S1.u32) - S2.u32")
    pcode.translate.cache_clear()
    try:
        (problem,) = failures(engine, "gfx950", "32", 1)
    finally:
        monkeypatch.undo()
        pcode.translate.cache_clear()
    assert problem.startswith("v_xad_u32")
