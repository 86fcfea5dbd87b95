"""Scalar operations against the pseudo-code of AMD's manuals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.isa import pcode, values
from tests.sim.isa.forms import Form, forms
from tests.sim.isa.known import ELSEWHERE, REFUSED, find
from tests.sim.support import kernel_text, run

pytest.importorskip("tinygrad")

SAMPLES = 12
EDGES = (0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 31, 32, 0x200010)


def checked() -> list[Form]:
    """The scalar operations whose expectation is pseudo-code."""
    return [
        form
        for form in forms()
        if form.scalar and not find(ELSEWHERE, form.name) and not find(REFUSED, form.name)
    ]


def sample(random: np.random.Generator) -> dict[str, int]:
    """Registers before an operation: three pairs, SCC and EXEC."""
    words = [
        int(random.choice(EDGES)) if random.random() < 0.4 else int(random.integers(0, 1 << 32))
        for _ in range(8)
    ]
    pairs = [words[i] | words[i + 1] << 32 for i in range(0, 8, 2)]
    return {
        "S0": pairs[0],
        "S1": pairs[1],
        "D0": pairs[2],
        "EXEC": pairs[3] | 1,
        "SCC": int(random.integers(0, 2)),
    }


def kernel_of(cases: list[tuple[Form, dict[str, int]]]) -> str:
    """A kernel that stores, for each case, the destination, SCC and EXEC."""
    lines = ["s_load_dwordx2 s[38:39], s[0:1], 0x0", "v_mov_b32_e32 v1, 0"]
    for form, state in cases:
        for name, first in (("S0", 4), ("S1", 8), ("D0", 20), ("EXEC", 126)):
            for half in range(2):
                register = (
                    f"exec_{'lh'[half]}{'oi'[half]}" if name == "EXEC" else f"s{first + half}"
                )
                lines.append(f"s_mov_b32 {register}, {state[name] >> 32 * half & 0xFFFFFFFF:#x}")
        lines += [f"s_cmp_eq_u32 {state['SCC']}, 1", next(iter(form.texts.values()))]
        lines += ["s_cselect_b32 s26, 1, 0", "s_mov_b64 s[24:25], exec", "s_mov_b64 exec, 1"]
        lines += [f"v_mov_b32_e32 v{10 + i}, s{r}" for i, r in enumerate((20, 21, 24, 25, 26))]
        lines += ["global_store_dwordx4 v1, v[10:13], s[38:39]"]
        lines += ["global_store_dword v1, v14, s[38:39] offset:16", "v_add_u32_e32 v1, 20, v1"]
    return kernel_text("\n".join(f"\t{line}" for line in lines))


def wanted(form: Form, state: dict[str, int]) -> tuple[int, int, int]:
    """Destination, EXEC and SCC by the manual."""
    sizes = [form.sizes[name] for name in form.sources]
    sources = {f"S{i}": state[f"S{i}"] & ((1 << max(size, 32)) - 1) for i, size in enumerate(sizes)}
    if "simm16" in form.sizes:
        position = 1 if form.name.startswith("s_cmpk") else 0
        sources = {"S0": state["D0"] & 0xFFFFFFFF, f"S{position}": 0x8123}
    others = {name: state[name] for name in ("D0", "EXEC", "SCC")}
    after = pcode.translate(form.name)(**sources, **others)
    size = max(32, form.sizes.get("sdst", 32))
    low = values.bits_of(after["D0"]) & ((1 << size) - 1)
    kept = state["D0"] >> size << size if size < 64 else 0
    return kept | low, int(after["EXEC"]) & ((1 << 64) - 1), int(after["SCC"]) & 1


@pytest.mark.parametrize("seed", [0, 1])
def test_manual(engine, seed):
    random = np.random.default_rng(seed)
    cases = [(form, sample(random)) for form in checked() for _ in range(SAMPLES)]
    result = np.zeros((len(cases), 5), np.uint32)
    run(engine, kernel_of(cases), (1,), [result])
    wrong = []
    for (form, state), words in zip(cases, result.astype(object), strict=True):
        actual = (words[0] | words[1] << 32, words[2] | words[3] << 32, words[4])
        expected = wanted(form, state)
        if actual != expected:
            listed = {name: hex(value) for name, value in state.items()}
            wrong.append(
                f"{form.name} {listed}: {tuple(map(hex, actual))}, "
                f"expected {tuple(map(hex, expected))}"
            )
    assert not wrong, f"{len(wrong)} cases:\n" + "\n".join(wrong[:40])
