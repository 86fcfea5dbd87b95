"""LDS addresses: the sum of address and offset wraps at 32 bits and is checked after that."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.support import kernel_text, launch

LANES = np.arange(64, dtype=np.int64)
SETUP = """s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_dword v2, v1, s[4:5]
	v_add_u32_e32 v4, 1000, v0
	s_waitcnt vmcnt(0)
"""
STORE = """	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v3, s[6:7]
	s_waitcnt vmcnt(0)"""
BODIES = {
    "one": "	ds_write_b32 v2, v4 offset:2064\n	ds_read_b32 v3, v2 offset:2064\n",
    "two": (
        "	ds_write2_b32 v2, v4, v4 offset0:200 offset1:201\n"
        "	s_waitcnt lgkmcnt(0)\n	ds_read2_b32 v[8:9], v2 offset0:200 offset1:201\n"
        "	s_waitcnt lgkmcnt(0)\n	v_mov_b32_e32 v3, v8\n"
    ),
    "atomic": (
        "	v_mov_b32_e32 v5, 0\n	ds_write_b32 v2, v5 offset:2064\n"
        "	s_waitcnt lgkmcnt(0)\n	ds_add_u32 v2, v4 offset:2064\n"
        "	s_waitcnt lgkmcnt(0)\n	ds_read_b32 v3, v2 offset:2064\n"
    ),
}


def launched(engine, body, addresses):
    """Runs a body over LDS addresses; returns the result and what it stored."""
    out = np.zeros(64, np.uint32)
    given = (addresses & 0xFFFFFFFF).astype(np.uint32)
    text = kernel_text(SETUP + body + STORE, arguments=2, lds=1024)
    result = launch(engine, engine.load(text), (1,), (64,), (given, out))
    return result, out


@pytest.mark.parametrize("form", BODIES)
def test_a_negative_address_with_an_offset_is_inside(any_engine, form):
    step = 8 if form == "two" else 4
    start = -800 if form == "two" else -2064
    result, out = launched(any_engine, BODIES[form], start + step * LANES[::-1])
    assert result.fault is None, result.fault
    assert (out == 1000 + LANES).all()


@pytest.mark.parametrize("form", BODIES)
@pytest.mark.parametrize("start", [-4096, 1024, 0x7FFFF000])
def test_what_is_outside_after_the_offset_faults(any_engine, form, start):
    result, _ = launched(any_engine, BODIES[form], start + 4 * LANES)
    assert result.fault.kind == "lds_out_of_bounds"
