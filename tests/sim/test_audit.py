"""Audits of kernels that only look racy; planted faults are in ``seeded``."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl

from kernel_gym.sim.compiler import audit_tables
from tests.sim.support import kernel_text, launch
from tests.sim.triton_kernels import compiled


@triton.jit
def step_in_place(param, velocity, BLOCK: tl.constexpr):
    """One program updates BLOCK elements of two vectors."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    moved = tl.load(velocity + at) * 0.5 + tl.load(param + at)
    tl.store(param + at, moved)
    tl.store(velocity + at, moved * 2)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("block", [64, 128])
def test_copies_of_what_another_wave_updates_in_place_are_no_race(engine, block, reverse):
    # Four waves have more lanes than there are elements: some load what they then throw away.
    text, shared = compiled(step_in_place, ["*fp32", "*fp32"], 4, 2, (), BLOCK=block)
    random = np.random.default_rng(0)
    param, velocity = (random.standard_normal(4 * block).astype(np.float32) for _ in range(2))
    moved = velocity * np.float32(0.5) + param
    kernel = engine.load(text, shared=shared)
    result = launch(
        engine, kernel, (4,), (256,), [param, velocity], audit=True, reverse_waves=reverse
    )
    assert result.fault is None, result.fault.message
    np.testing.assert_allclose(param, moved, rtol=1e-6, atol=1e-7)


EXCHANGE = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_xor_b32_e32 v2, 0x100, v1
	ds_write_b32 v1, v0
	{wait}
	s_barrier
	ds_read_b32 v3, v2
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v3, s[6:7]
"""


@pytest.mark.parametrize(
    ("wait", "kind"),
    [
        ("s_waitcnt lgkmcnt(0)", None),
        ("s_waitcnt vmcnt(0)", "unwaited_write"),
        ("s_waitcnt lgkmcnt(1)", "unwaited_write"),
    ],
)
def test_a_write_must_land_before_the_barrier(engine, wait, kind):
    body = EXCHANGE.format(wait=wait)
    body = body.replace("\tds_write", "\ts_waitcnt lgkmcnt(0)\n\tds_write")
    out = np.zeros(128, np.uint32)
    kernel = engine.load(kernel_text(body, arguments=2, lds=512))
    values = [np.zeros(1, np.uint32), out]
    result = launch(engine, kernel, (1,), (128,), values, audit=True)
    assert (result.fault and result.fault.kind) == kind
    if kind is None:
        assert out.tolist() == [i ^ 64 for i in range(128)]
    else:
        assert "the write is by wave 1" in result.fault.message


HALVES = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 1, v0
	v_mov_b32_e32 v2, {mask}
	v_and_b32_e32 v1, v1, v2
	v_add_u32_e32 v1, 2, v1
	v_add_u32_e32 v3, 1, v0
	s_waitcnt lgkmcnt(0)
	{store}
"""
STORES = {
    "global_race": "global_store_short v1, v3, s[6:7]",
    "lds_race": "ds_write_b16 v1, v3\n\ts_waitcnt lgkmcnt(0)",
}


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize(("mask", "races"), [("0xff", False), ("0x7e", True), ("0x7f", True)])
def test_waves_may_share_a_word_but_no_byte_of_it(engine, kind, mask, races):
    # Lane 63 of wave 0 and lane 0 of wave 1 store the halves of one word.
    body = HALVES.format(mask=mask, store=STORES[kind])
    kernel = engine.load(kernel_text(body, arguments=2, lds=512))
    out = np.zeros(256, np.uint16)
    values = [np.zeros(1, np.uint32), out]
    result = launch(engine, kernel, (1,), (128,), values, audit=True)
    assert (result.fault and result.fault.kind) == (kind if races else None)
    if kind == "global_race" and not races:
        assert out[1:129].tolist() == list(range(1, 129))


@pytest.mark.parametrize("start", [0, 4, 2048 - 128, 4096 - 128])
def test_a_store_that_meets_one_word_of_another_wave_is_a_race(engine, start):
    # Wave 1 stores 256 bytes, the last word of which is the first that wave 0 stores.
    body = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_and_b32_e32 v2, 0xfc, v1
	v_cmp_gt_u32_e32 vcc, 64, v0
	v_mov_b32_e32 v3, 0xfc
	v_cndmask_b32_e32 v3, 0, v3, vcc
	v_add3_u32 v2, v2, v3, {start}
	v_add_u32_e32 v4, 1, v0
	s_waitcnt lgkmcnt(0)
	global_store_dword v2, v4, s[6:7]
"""
    literal = f"v_mov_b32_e32 v5, {start}\n\tv_add_u32_e32 v2, v2, v3\n\tv_add_u32_e32 v2, v2, v5"
    body = body.replace("v_add3_u32 v2, v2, v3, {start}", literal)
    kernel = engine.load(kernel_text(body, arguments=2))
    values = [np.zeros(1, np.uint32), np.zeros(2048, np.uint32)]
    fault = launch(engine, kernel, (1,), (128,), values, audit=True).fault
    assert fault is not None
    assert (fault.kind, fault.wave, fault.lane) == ("global_race", 1, 63)


def looked_at(engine, body):
    """For each instruction, the number of ranges read and written that an audit must check."""
    kernel = engine.load(kernel_text(body))
    table = audit_tables.audit_table(kernel.decoded)
    size = audit_tables._LAYOUT.size
    rows = [audit_tables._LAYOUT.unpack_from(table, at) for at in range(0, len(table), size)]
    return [(row[4], row[5]) for row in rows]


def test_registers_are_looked_at_once_under_one_exec(engine):
    body = """
	v_add_f32_e32 v2, v3, v4
	v_add_f32_e32 v5, v2, v3
	v_add_f32_e32 v2, v5, v6
	s_mov_b64 exec, s[2:3]
	v_add_f32_e32 v5, v2, v3
	v_add_f32_e32 v5, v2, v3
	v_cmpx_lt_u32_e32 vcc, v2, v3
	v_add_f32_e32 v5, v2, v3
	v_readfirstlane_b32 s4, v5
	s_branch .LBB0_1
.LBB0_1:
	v_add_f32_e32 v5, v5, v3
"""
    expected = [(2, 1), (0, 1), (1, 0), (0, 0), (2, 1), (0, 0), (0, 0), (2, 1), (0, 0), (0, 0)]
    assert looked_at(engine, body)[: len(expected)] == expected
    assert looked_at(engine, body)[len(expected)] == (2, 1)


def test_a_register_that_other_lanes_have_not_defined_matters(engine):
    body = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_mov_b64 exec, 0xff
	v_mov_b32_e32 v2, 1.0
	v_add_f32_e32 v3, v2, v2
	s_mov_b64 exec, {lanes}
	s_waitcnt lgkmcnt(0)
	v_add_f32_e32 v3, v2, v2
	global_store_dword v1, v3, s[6:7]
"""
    values = [np.zeros(1, np.uint32), np.zeros(64, np.uint32)]
    for lanes, kind in (("0x7f", None), ("0x1ff", "uninitialised_register")):
        kernel = engine.load(kernel_text(body.format(lanes=lanes), arguments=2))
        fault = launch(engine, kernel, (1,), (64,), values, audit=True).fault
        assert (fault and fault.kind) == kind
