"""The writes that a signal to another workgroup covers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.support import kernel_text, launch

SIGNAL = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_mov_b32_e32 v2, 0
	v_mov_b32_e32 v3, 1
	v_readfirstlane_b32 s9, v0
	s_waitcnt lgkmcnt(0)
	s_cmp_eq_u32 s2, 0
	s_cbranch_scc0 receive
	v_add_u32_e32 v4, 5, v0
	global_store_dword v1, v4, s[6:7]
	{before}
	s_cmp_eq_u32 s9, {sender}
	s_cbranch_scc0 end
	{signal}
	s_endpgm
receive:
	global_atomic_add v5, v2, v2, s[4:5] sc0
	s_waitcnt vmcnt(0)
	v_readfirstlane_b32 s8, v5
	s_cmp_eq_u32 s8, 0
	s_cbranch_scc1 receive
	buffer_inv sc1
	global_load_dword v6, v1, s[6:7]
	s_waitcnt vmcnt(0)
	global_store_dword v1, v6, s[6:7] offset:1024
end:
"""
ADD = "global_atomic_add v2, v3, s[4:5]"
WAIT, BARRIER, NOTHING = "s_waitcnt vmcnt(0)", "s_barrier", "s_nop 0"


def outcome(engine, before, signal=ADD, waves=1, sender=0, reverse=False):
    """The fault of the exchange, if any."""
    body = SIGNAL.format(before=before, signal=signal, sender=64 * sender)
    kernel = engine.load(kernel_text(body, arguments=2))
    values = [np.zeros(1, np.uint32), np.zeros(512, np.uint32)]
    options = {"audit": True, "reverse_waves": reverse}
    fault = launch(engine, kernel, (2,), (64 * waves,), values, **options).fault
    if fault is None:
        count = 64 * waves
        assert values[1][256 : 256 + count].tolist() == list(range(5, 5 + count))
    return fault and fault.kind


@pytest.mark.parametrize(
    ("before", "fault"),
    [
        (WAIT, None),
        ("s_waitcnt 0x0f70", None),
        ("s_waitcnt lgkmcnt(0) & vmcnt(0)", None),
        ("buffer_wbl2 sc1\n\ts_waitcnt vmcnt(0)", None),
        (NOTHING, "global_race"),
        ("s_waitcnt lgkmcnt(0)", "global_race"),
        ("s_waitcnt vmcnt(1)", "global_race"),
        ("s_waitcnt 0xc07f", "global_race"),
    ],
)
def test_an_atomic_overtakes_a_store_that_is_not_waited_for(engine, before, fault):
    assert outcome(engine, before) == fault


def test_a_later_atomic_covers_what_was_waited_for_in_between(engine):
    assert outcome(engine, NOTHING, f"{ADD}\n\t{ADD}") == "global_race"
    assert outcome(engine, NOTHING, f"{ADD}\n\t{WAIT}\n\t{ADD}") is None


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sender", [0, 1])
@pytest.mark.parametrize(
    ("before", "fault"),
    [(WAIT, "global_race"), (f"{WAIT}\n\t{BARRIER}", None), (BARRIER, None)],
)
def test_a_signal_covers_other_waves_behind_a_barrier_only(engine, before, fault, sender, reverse):
    assert outcome(engine, before, waves=2, sender=sender, reverse=reverse) == fault
