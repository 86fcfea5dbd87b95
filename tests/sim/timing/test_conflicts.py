"""Bank conflicts are named by instruction, with the cycles of an access."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gym.sim.layouts import AccessCounts, field_names
from kernel_gym.sim.timing.conflicts import MAX_CONFLICTS, bank_conflicts, worst_of_lines
from kernel_gym.sim.timing.profile import profile_text
from tests.sim.support import kernel_text, run

BODY = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_mul_u32_u24_e32 v1, {stride}, v0
	v_mov_b32_e32 v2, 0
	ds_write_b32 v1, v2
	s_waitcnt lgkmcnt(0)
	ds_read_b32 v3, v1
	s_waitcnt lgkmcnt(0)
	v_lshlrev_b32_e32 v4, 2, v0
	global_store_dword v4, v3, s[4:5]
"""


def counts(**values: float) -> np.ndarray:
    """Returns the counts of one instruction."""
    return np.array([[values.get(name, 0.0) for name in field_names(AccessCounts)]])


@pytest.mark.parametrize(
    ("size", "cycles", "expected"),
    [
        (4, 2, None),
        (4, 64, (64.0, 2.0)),
        (8, 4, None),
        (8, 8, (8.0, 4.0)),
        (16, 8, None),
        (16, 32, (32.0, 8.0)),
    ],
)
def test_an_access_is_compared_with_what_its_lanes_need(size, cycles, expected):
    runs = 10
    made = counts(
        executions=runs, lanes=64 * runs, bytes=64 * size * runs, lds_cycles=cycles * runs
    )
    conflicts = [(entry["cycles"], entry["least"]) for entry in bank_conflicts(made)]
    assert conflicts == ([expected] if expected else [])


def test_half_a_wave_needs_half_the_cycles():
    made = counts(executions=1, lanes=32, bytes=128, lds_cycles=2)
    assert [(e["cycles"], e["least"]) for e in bank_conflicts(made)] == [(2.0, 1.0)]


def test_the_instructions_that_lose_most_come_first():
    rows = [
        counts(executions=n, lanes=64 * n, bytes=256 * n, lds_cycles=8 * n) for n in range(1, 9)
    ]
    conflicts = [entry["instruction"] for entry in bank_conflicts(np.concatenate(rows))]
    assert conflicts == [7, 6, 5, 4, 3, 2, 1, 0]


def test_a_line_is_named_once_with_its_worst_conflict():
    conflicts = [
        {"source": source, "cycles": cycles}
        for source, cycles in (("a.hip:1", 64), ("a.hip:1", 32), ("", 16), ("", 8), ("b.hip:2", 4))
    ]
    assert [entry["cycles"] for entry in worst_of_lines(conflicts)] == [64, 16, 8, 4]
    lines = [{"source": f"a.hip:{n}", "cycles": 64} for n in range(9)]
    assert worst_of_lines(lines) == lines[:MAX_CONFLICTS]


@pytest.mark.parametrize(("stride", "cycles"), [(4, None), (128, 64), (132, None), (8, 4)])
def test_a_launch_names_its_conflicts(engine, stride, cycles):
    out = np.zeros(64, np.float32)
    text = kernel_text(BODY.format(stride=f"{stride:#x}"), lds=64 * stride)
    profile = run(engine, text, (1,), [out], model_time=True, full_trace=True).profile
    conflicts = [entry["cycles"] for entry in profile["bank_conflicts"]]
    assert conflicts == ([cycles, cycles] if cycles else [])
    shown = profile_text("k", profile)
    assert ("bank conflicts: " in shown) == bool(cycles)
    assert not cycles or f"{cycles} cycles an access (2 without)" in shown
