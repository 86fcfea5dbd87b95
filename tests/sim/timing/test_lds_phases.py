"""Which lanes share a cycle of the LDS, by width, as HipKittens@f09e9685 and AMD publish them."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gym.sim.layouts import AccessCounts, field_names
from tests.sim.support import LANES, kernel_text, launch

LDS = 1 << 14
CYCLES = field_names(AccessCounts).index("lds_cycles")
BODY = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_lshl_b32 s10, s2, 8
	v_add_u32_e32 v1, s10, v1
	s_waitcnt lgkmcnt(0)
	global_load_dword v2, v1, s[4:5]
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v5, 0
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v7, 0
	s_waitcnt vmcnt(0)
	v_cmp_le_i32_e32 vcc, 0, v2
	s_and_saveexec_b64 s[12:13], vcc
	{access}
	s_waitcnt lgkmcnt(0)
"""
IN_ORDER_16 = [list(range(first, first + 16)) for first in range(0, LANES, 16)]
IN_ORDER_8 = [list(range(first, first + 8)) for first in range(0, LANES, 8)]
PAIRED_8 = [
    [*range(first + half, first + half + 4), *range(second + half, second + half + 4)]
    for half in (0, 32)
    for first, second in ((0, 20), (4, 16), (8, 28), (12, 24))
]
WIDE_16 = [
    [lane + half for lane in lanes]
    for half in (0, 32)
    for lanes in (
        [0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27],
        [4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 28, 29, 30, 31],
    )
]
HALVES = [list(range(32)), list(range(32, LANES))]
RULES = [  # target, access, bytes, lanes of each phase, banks
    ("gfx942", "ds_read_b32 v4, v2", 4, HALVES, 32),
    ("gfx942", "ds_read_b64 v[4:5], v2", 8, IN_ORDER_16, 32),
    ("gfx942", "ds_read_b96 v[4:6], v2", 12, PAIRED_8, 32),
    ("gfx942", "ds_read_b128 v[4:7], v2", 16, PAIRED_8, 32),
    ("gfx942", "ds_write_b64 v2, v[4:5]", 8, IN_ORDER_16, 32),
    ("gfx942", "ds_write_b128 v2, v[4:7]", 16, IN_ORDER_8, 32),
    ("gfx90a", "ds_read_b128 v[4:7], v2", 16, PAIRED_8, 32),
    ("gfx950", "ds_read_b64 v[4:5], v2", 8, HALVES, 64),
    ("gfx950", "ds_read_b96 v[4:6], v2", 12, PAIRED_8, 32),
    ("gfx950", "ds_read_b128 v[4:7], v2", 16, WIDE_16, 64),
    ("gfx950", "ds_write_b64 v2, v[4:5]", 8, IN_ORDER_16, 32),
]
PARAMETERS = pytest.mark.parametrize(
    ("arch", "access", "size", "phases", "banks"),
    RULES,
    ids=[f"{arch} {access.split()[0]}" for arch, access, *_ in RULES],
)


def cycles(engine, arch, access, places):
    """Cycles of the LDS for lanes at byte offsets; other lanes take no part."""
    row = np.full((1, LANES), -1, np.int32)
    for lane, place in places.items():
        row[0, lane] = place
    text = kernel_text(BODY.format(access=access), lds=LDS).replace("gfx942", arch)
    kernel = engine.load(text)
    result = launch(engine, kernel, (1,), (64,), [row], model_time=True, full_trace=True)
    assert result.fault is None, result.fault.message
    texts = [i.text for i in kernel.decoded.instructions]
    shape = len(texts), len(field_names(AccessCounts))
    counts = np.ctypeslib.as_array(engine._api.sim_sampled(engine._handle), shape)
    return int(counts[texts.index(access), CYCLES])


@PARAMETERS
def test_lanes_of_one_phase_share_a_cycle(engine, arch, access, size, phases, banks):
    step = max(16, size)
    for lane in (0, 5, 14, 33):
        phase = next(p for p in phases if lane in p)
        for other in range(LANES):
            if other == lane:
                continue
            pair = {lane: 0, other: step}
            assert cycles(engine, arch, access, pair) == (1 if other in phase else 2), other


@PARAMETERS
def test_all_lanes_take_a_cycle_a_phase(engine, arch, access, size, phases, banks):
    together = {lane: lane * size for lane in range(LANES)} if size != 12 else None
    if together:
        assert cycles(engine, arch, access, together) == len(phases)


@PARAMETERS
def test_banks_repeat(engine, arch, access, size, phases, banks):
    one, other = phases[0][0], phases[0][1]
    assert cycles(engine, arch, access, {one: 0, other: 4 * banks}) == 2
    assert cycles(engine, arch, access, {one: 0, other: 2 * banks}) == 1
