"""A modelled launch counts lines, segments and bank conflicts of memory accesses exactly."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gym.sim.layouts import AccessCounts, field_names
from tests.sim.support import LANES, kernel_text, launch

ACCESS_FIELDS = field_names(AccessCounts)

GATHER = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	s_load_dwordx2 s[8:9], s[0:1], 0x10
	v_lshlrev_b32_e32 v1, 2, v0
	s_lshl_b32 s10, s2, 8
	v_add_u32_e32 v1, s10, v1
	s_waitcnt lgkmcnt(0)
	global_load_dword v2, v1, s[4:5]
	s_waitcnt vmcnt(0)
	v_cmp_le_i32_e32 vcc, 0, v2
	s_and_saveexec_b64 s[12:13], vcc
	global_load_dword v3, v2, s[6:7]
	ds_read_b32 v4, v2
	s_waitcnt vmcnt(0) lgkmcnt(0)
	global_store_dword v1, v3, s[8:9]
"""
WORDS = 1 << 14
GOLDEN = 3.1428087498239975e-06
"""Seconds of version 6 of the timing model: workgroups that run together wait for shared lines."""


def offsets() -> np.ndarray:
    """Byte offsets by workgroup and lane; a negative lane takes no part.

    More kinds than an instruction keeps, some more than once, at starts of every kind.
    """
    random = np.random.default_rng(0)
    lanes = np.arange(LANES)
    kinds = [4 * random.integers(0, WORDS, LANES) for _ in range(12)]
    kinds += [4 * step * lanes for step in (1, 2, 3, 16, 32, 33)]
    kinds += [0 * lanes, 4 * (lanes % 5), 4 * lanes[::-1], lanes // 16 * 512 + lanes % 16 * 4]
    kinds += [np.where(lanes % 3 == 0, -1, kind) for kind in kinds[:14:2]]
    starts = [0, 4, 60, 64, 124]
    rows = [np.where(k < 0, -1, (k + s) % (4 * WORDS)) for k in kinds for s in starts]
    order = random.permutation(2 * len(rows))
    return np.array([rows[i % len(rows)] for i in order], np.int32)


def noted(engine, table):
    """The accounts of the gathering load and of the LDS read, and the modelled seconds."""
    kernel = engine.load(kernel_text(GATHER, arguments=3, lds=4 * WORDS))
    data, out = np.arange(WORDS, dtype=np.int32), np.full(table.shape, -1, np.int32)
    result = launch(
        engine, kernel, table.shape[:1], (64,), [table, data, out], model_time=True, full_trace=True
    )
    assert result.fault is None, result.fault.message
    assert (out == np.where(table < 0, -1, table // 4)).all()
    texts = [i.text for i in kernel.decoded.instructions]
    shape = len(texts), len(ACCESS_FIELDS)
    rows = []
    for name, start in (("sim_accesses", "global_load_dword v3"), ("sim_sampled", "ds_read")):
        read = np.ctypeslib.as_array(getattr(engine._api, name)(engine._handle), shape)
        number = next(i for i, text in enumerate(texts) if text.startswith(start))
        rows.append(dict(zip(ACCESS_FIELDS, read[number].tolist(), strict=True)))
    return *rows, result.seconds


def conflict_cycles(places):
    """Cycles of 32 banks that serve one word each: 32 lanes at a time."""
    cycles = 0
    for first in (0, 32):
        words = {p // 4 for p in places[first : first + 32] if p >= 0}
        banks = np.bincount([w % 32 for w in words], minlength=32)
        cycles += int(banks.max()) if words else 0
    return cycles


def test_lines_and_conflicts_are_those_of_each_lane(any_engine):
    table = offsets()
    load, lds, _ = noted(any_engine, table)
    active = [row[row >= 0].astype(np.int64) for row in table]
    assert load["executions"] == len(table)
    assert load["lanes"] == sum(len(row) for row in active)
    assert load["bytes"] == 4 * load["lanes"]
    assert load["segments"] == sum(len(set(row // 64)) for row in active)
    assert load["lines"] == sum(len(set(row // 128)) for row in active)
    assert lds["lds_cycles"] == sum(conflict_cycles(row) for row in table)


def test_a_line_between_two_halves_is_not_touched(any_engine):
    lanes = np.arange(LANES)
    table = np.array([4 * lanes + 256 * (lanes >= 32)], np.int32)  # 512 bytes, the half of them
    assert noted(any_engine, table)[0]["lines"] == 2


def test_the_model_says_what_it_said_when_it_looked_at_every_lane(any_engine):
    assert noted(any_engine, offsets())[2] == pytest.approx(GOLDEN, rel=1e-12)


STORE_THEN_LOAD = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_mov_b32_e32 v2, 7
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v2, s[4:5]
	s_waitcnt vmcnt(0)
	global_load_dword v3, v1, s[4:5]
	s_waitcnt vmcnt(0)
	global_load_dword v4, v1, s[4:5]
	s_waitcnt vmcnt(0)
"""


def test_a_load_after_a_store_goes_to_the_l2(any_engine):
    """Stores allocate no lines in the L1 (MrRoy09/AMD-CDNA3-CacheBenchmarking@90676cca)."""
    kernel = any_engine.load(kernel_text(STORE_THEN_LOAD))
    out = np.zeros(LANES, np.int32)
    launch(any_engine, kernel, (1,), (64,), [out], model_time=True, full_trace=True)
    texts = [i.text for i in kernel.decoded.instructions]
    read = np.ctypeslib.as_array(
        any_engine._api.sim_sampled(any_engine._handle), (len(texts), len(ACCESS_FIELDS))
    )
    misses = read[:, ACCESS_FIELDS.index("l1_misses")]
    first, second = (misses[texts.index(f"global_load_dword v{r}, v1, s[4:5]")] for r in (3, 4))
    assert first == 2  # lines of 128 bytes
    assert second == 0
