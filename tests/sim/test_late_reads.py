"""Reads of LDS that are still under way when their wave passes a barrier."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.support import kernel_text, launch

OVERWRITE = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_xor_b32_e32 v2, 0x100, v1
	v_add_u32_e32 v4, 7, v0
	ds_write_b32 v1, v0
	s_waitcnt lgkmcnt(0)
	s_barrier
	{read}
	{before}
	s_barrier
	{behind}
	{write}
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v3, s[6:7]
"""
READ, WRITE = "ds_read_b32 v3, v2", "ds_write_b32 v1, v4"
RESULT = "v_mov_b32_e32 v3, v0"
NOTHING, ALL = "s_nop 0", "s_waitcnt lgkmcnt(0)"


def outcome(engine, read=READ, before=NOTHING, behind=NOTHING, write=WRITE, waves=2):
    """The fault of the exchange, and what it has stored."""
    body = OVERWRITE.format(read=read, before=before, behind=behind, write=write)
    body = body.replace("0x100", hex(128 * waves))
    kernel = engine.load(kernel_text(body, arguments=2, lds=4096))
    out = np.zeros(64 * waves, np.uint32)
    values = [np.zeros(1024, np.uint32), out]
    return launch(engine, kernel, (2,), (64 * waves,), values, audit=True).fault, out


@pytest.mark.parametrize(
    ("before", "behind", "found"),
    [
        (ALL, NOTHING, False),
        ("s_waitcnt 0xc07f", NOTHING, False),
        ("s_waitcnt vmcnt(0) & lgkmcnt(0)", NOTHING, False),
        (NOTHING, NOTHING, True),
        (NOTHING, ALL, True),  # too late: the other wave does not know of this wait
        ("s_waitcnt vmcnt(0)", ALL, True),
        ("s_waitcnt lgkmcnt(1)", ALL, True),
        ("s_waitcnt 0x0f70", ALL, True),
        (f"{ALL}\n\tds_read_b32 v5, v2 offset:1024", ALL, False),  # of what nobody overwrites
        ("ds_read_b32 v5, v2 offset:1024\n\ts_waitcnt lgkmcnt(1)", ALL, False),  # in order
        ("s_load_dword s8, s[4:5], 0x0\n\ts_waitcnt lgkmcnt(1)", ALL, True),  # in any order
        ("s_load_dword s8, s[4:5], 0x0\n\ts_waitcnt lgkmcnt(0)", ALL, False),
    ],
)
def test_a_read_must_be_waited_for_before_the_barrier(engine, before, behind, found):
    fault, out = outcome(engine, before=before, behind=behind)
    assert (fault and fault.kind) == ("unwaited_read" if found else None)
    if not found:
        assert out.tolist() == [i ^ 64 for i in range(128)]
    else:
        assert "the read is by wave" in fault.message
        assert fault.instruction.startswith("ds_write_b32")


@pytest.mark.parametrize(
    ("read", "found"),
    [
        (READ, True),
        ("ds_read_u8 v3, v2 offset:3", False),  # only the lowest byte of a word changes
        ("ds_read_u8 v3, v2", True),
        (f"ds_read2_b32 v[6:7], v2 offset1:192\n\t{RESULT}", True),
        (f"ds_read2_b32 v[6:7], v2 offset0:128 offset1:192\n\t{RESULT}", False),
        (f"ds_add_rtn_u32 v6, v2, v0 offset:1024\n\t{RESULT}", False),
        ("ds_bpermute_b32 v3, v2, v0", False),  # uses no memory
    ],
)
def test_only_bytes_that_are_overwritten_matter(engine, read, found):
    fault, _ = outcome(engine, read=read, behind=ALL)
    assert (fault and fault.kind) == ("unwaited_read" if found else None)


@pytest.mark.parametrize(
    ("write", "found"),
    [
        (WRITE, True),
        ("ds_write_b32 v1, v0", False),  # the value that is there
        ("ds_write_b32 v2, v4", False),  # what the wave itself has read
        ("ds_write_b32 v1, v4 offset:2048", False),
        ("s_barrier\n\tds_write_b32 v1, v4", False),  # each wave waited before this barrier
        ("ds_add_u32 v1, v4", True),
    ],
)
def test_only_changes_by_another_wave_before_the_next_barrier_matter(engine, write, found):
    fault, _ = outcome(engine, behind=ALL, write=write)
    assert (fault and fault.kind) == ("unwaited_read" if found else None)


def test_a_read_that_is_never_waited_for_stays_under_way(engine):
    body = OVERWRITE.replace("{write}\n\ts_waitcnt lgkmcnt(0)\n", "{write}\n")
    body = body.format(read=READ, before=NOTHING, behind="s_barrier", write=WRITE)
    kernel = engine.load(kernel_text(body.replace(", v3, s[6:7]", ", v0, s[6:7]"), 2, 4096))
    values = [np.zeros(1024, np.uint32), np.zeros(128, np.uint32)]
    fault = launch(engine, kernel, (1,), (128,), values, audit=True).fault
    assert fault is not None
    assert fault.kind == "unwaited_read"


def test_a_wave_that_has_ended_uses_no_read_any_more(engine):
    body = """
	v_lshlrev_b32_e32 v1, 2, v0
	v_readfirstlane_b32 s4, v0
	ds_read_b32 v3, v1
	s_cmp_eq_u32 s4, 0
	s_cbranch_scc1 end
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_and_b32_e32 v1, 0xff, v1
	ds_write_b32 v1, v0
end:
"""
    kernel = engine.load(kernel_text(body, lds=1024))
    result = launch(engine, kernel, (1,), (128,), [np.zeros(4, np.uint32)], audit=True)
    assert result.fault is None, result.fault.message


def test_one_wave_overwrites_what_it_reads(engine):
    fault, _ = outcome(engine, behind=ALL, waves=1)
    assert fault is None


def test_a_write_over_a_write_under_way(engine):
    fault, _ = outcome(engine, read="ds_write_b32 v1, v4", write="ds_write_b32 v2, v0")
    assert fault is not None
    assert fault.kind == "unwaited_write"


@pytest.mark.parametrize(("before", "proven"), [(ALL, True), (NOTHING, False)])
def test_a_kernel_with_such_a_read_is_audited_every_time(engine, before, proven):
    body = OVERWRITE.format(read=READ, before=before, behind=ALL, write=WRITE)
    assert engine.load(kernel_text(body, 2, 4096)).program.waits_everywhere is proven
