"""Runs many operations in one kernel and works out what the manual says of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_gym.sim.engine.engine import Engine
from tests.sim.isa import pcode, values
from tests.sim.isa.forms import Form
from tests.sim.isa.known import own_expectation
from tests.sim.support import LANES, kernel_text, run

SPECIAL16 = [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E01, 0x7D01]
SPECIAL16 += [0x3C00, 0xBC00, 0x3800, 0x3E00, 0x4100, 0xFD05]
SPECIAL32 = [0, 1 << 31, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000]
SPECIAL32 += [0xFF800000, 0x7FC00001, 0x7FA00001, 0xFFA00001, 0x3F800000, 0xBF800000, 0x3F000000]
SPECIAL32 += [0x3FC00000, 0x4F000000, 0xCF000000, 0x4F800000, 0x43800000, 0x42FF0000, 0x40200000]
SPECIAL64 = [values.bits_of(np.float64(x)) for x in (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, 5e-324)]
SPECIAL64 += [values.bits_of(np.float64(x)) for x in (2.0**31, -(2.0**31), 2.0**32, 1e300, 1e-300)]
SPECIAL64 += [0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48 | 5, 0x7FF4 << 48 | 5, 0xFFFFFFFFFFFFF]
OUTPUT_WORDS = 4
# Approximations that flush f32 denormals, whatever MODE says: LLVM scales their inputs for it.
FLUSHING = ("v_log_f32", "v_rcp_f32", "v_rcp_iflag_f32", "v_rsq_f32")


@dataclass(frozen=True)
class Inputs:
    """Random bits for the operands of all lanes.

    Attributes:
        s: Three sources and the old destination, (4, 64) of 64 bits.
        vcc: A lane mask that operations read.
        exec: The active lanes.
    """

    s: np.ndarray
    vcc: int
    exec: int


def _pool(kind: str, random: np.random.Generator) -> np.ndarray:
    """64 patterns of 64 bits that are interesting for a kind of operand."""
    words = random.integers(0, 1 << 64, LANES, dtype=np.uint64)
    narrow = random.random(LANES) < 0.4
    if "64" in kind:
        special = np.array(SPECIAL64, np.uint64)
        return np.where(narrow, random.choice(special, LANES), words)
    size, special = (16, SPECIAL16) if "16" in kind else (32, SPECIAL32)
    pieces = np.zeros(LANES, np.uint64)
    for i in range(64 // size):
        part = random.choice(np.array(special, np.uint64), LANES)
        pieces |= part << np.uint64(size * i)
    near = random.normal(0, 4, 2 * LANES).astype(np.float32)
    if size == 32:
        floats = near.view(np.uint64)
    else:
        floats = random.normal(0, 4, 4 * LANES).astype(np.float16).view(np.uint64)
    ordinary = random.random(LANES) < 0.5
    return np.where(narrow, pieces, np.where(ordinary, floats, words))


def make_inputs(kind: str, seed: int) -> Inputs:
    """Inputs of a kind: ``16``, ``32`` or ``64`` bits."""
    random = np.random.default_rng([seed, int(kind)])
    mask = int(random.integers(0, 1 << 64, dtype=np.uint64))
    active = (1 << 64) - 1 if seed % 2 else int(random.integers(1, 1 << 64, dtype=np.uint64))
    return Inputs(np.stack([_pool(kind, random) for _ in range(4)]), mask, active)


def kind_of(form: Form) -> str:
    """Which kind of inputs suits an operation."""
    formats = " ".join(form.formats[name] for name in form.sources)
    return "64" if "64" in formats else "16" if "16" in formats else "32"


def _words(value: int) -> tuple[int, int]:
    return value & 0xFFFFFFFF, value >> 32


def kernel_of(texts: Sequence[str], inputs: Inputs, target: str) -> str:
    """A kernel that runs each instruction on the same inputs and stores what it leaves."""
    lines = ["s_load_dwordx4 s[36:39], s[0:1], 0x0", "v_lshlrev_b32_e32 v1, 2, v0"]
    lines += [f"global_load_dword v{2 + i}, v1, s[36:37] offset:{256 * i}" for i in range(8)]
    lines.append("v_lshlrev_b32_e32 v1, 4, v0")
    for text in texts:
        lines += [f"s_mov_b32 s{22 + i}, {w:#x}" for i, w in enumerate(_words(inputs.vcc))]
        lines += ["s_mov_b64 vcc, s[22:23]", "s_mov_b64 s[20:21], 0"]
        lines += ["v_mov_b32_e32 v10, v8", "v_mov_b32_e32 v11, v9"]
        lines += [
            f"s_mov_b32 exec_{part}, {w:#x}"
            for part, w in zip(("lo", "hi"), _words(inputs.exec), strict=True)
        ]
        lines.append(text)
        lines += ["s_mov_b64 s[24:25], exec", "s_mov_b64 exec, -1"]
        pair = "s[20:21]" if "s[20:21]" in text else "vcc"
        lines += [f"s_mov_b64 s[26:27], {pair}", "v_mov_b32_e32 v12, s26", "v_mov_b32_e32 v13, s27"]
        if "v_cmpx" in text:
            lines += ["v_mov_b32_e32 v10, s24", "v_mov_b32_e32 v11, s25"]
        lines += ["global_store_dwordx4 v1, v[10:13], s[38:39]", "v_add_u32_e32 v1, 0x400, v1"]
    text = kernel_text("\n".join(f"\t{line}" for line in lines), arguments=2)
    return text.replace("--gfx942", f"--{target}")


def execute(engine: Engine, texts: Sequence[str], inputs: Inputs, target: str) -> np.ndarray:
    """Words that the instructions leave, (instructions, lanes, 4): v10, v11 and a lane mask."""
    rows = inputs.s.view(np.uint32).reshape(4, LANES, 2).transpose(0, 2, 1).copy()
    result = np.zeros((len(texts), LANES, OUTPUT_WORDS), np.uint32)
    run(engine, kernel_of(texts, inputs, target), (1,), [rows, result])
    return result


@dataclass(frozen=True)
class Expected:
    """The expected value of a lane (None if it is not written), and the lane's bit of the mask."""

    destination: Any
    bit: int | None


def _sources(form: Form, inputs: Inputs, lane: int) -> dict[str, int]:
    """The state before the operation; a literal stands where the text has one."""
    sizes = [form.sizes[name] for name in form.sources]
    state = {
        f"S{i}": int(inputs.s[i, lane]) & ((1 << max(size, 32)) - 1) for i, size in enumerate(sizes)
    }
    if form.name in FLUSHING and not state["S0"] & 0x7F800000:
        state["S0"] &= 1 << 31
    return state


def expected(form: Form, inputs: Inputs, lane: int) -> Expected:
    """Returns the result of the manual's pseudo-code for a lane.

    Raises:
        Untranslatable: If it has none.
    """
    own = own_expectation(form.name)
    if own:
        with np.errstate(all="ignore"):
            result = own(*(int(inputs.s[i, lane]) for i in range(len(form.sources))))
        return Expected(values.bits_of(result), None)
    function = pcode.translate(form.name)
    state = _sources(form, inputs, lane) | {"laneId": lane, "VCC": inputs.vcc, "EXEC": inputs.exec}
    accumulates = any(part in form.name for part in ("mac", "dot", "ashr_pk"))
    state["D0"] = int(inputs.s[3, lane]) if accumulates else 0
    with np.errstate(all="ignore"):
        after = function(**state)
    if form.name.startswith("v_cmp"):
        return Expected(None, values.bits_of(after["D0"]) >> lane & 1)
    changed = form.name.startswith(("v_add", "v_sub")) and "_co_" in form.name
    bit = values.bits_of(after["VCC"]) >> lane & 1 if changed else None
    if form.name.startswith("v_mad_") and "64" in form.name and "D1" in after:
        bit = int(after["D1"]) & 1
    return Expected(values.bits_of(after["D0"]), bit)
