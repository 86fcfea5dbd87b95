"""The order in which workgroups begin: turns at an atomic counter show it."""

from __future__ import annotations

import pytest

from tests.sim.engine.test_findings import GUARD, Memory

TURN = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, 1
	s_mov_b64 exec, 1
	s_waitcnt lgkmcnt(0)
	global_atomic_add v3, v1, v2, s[4:5] sc0
	s_lshl_b32 s9, s2, 2
	v_mov_b32_e32 v1, s9
	s_waitcnt vmcnt(0)
	global_store_dword v1, v3, s[4:5] offset:4
"""


def turns(workgroups: int, **options) -> list[int]:
    """Returns the turn of each workgroup."""
    memory = Memory(size=GUARD)
    result = memory.launch(TURN, grid=workgroups, **options)
    assert result.fault is None, result.fault
    return memory.words[GUARD + 1 : GUARD + 1 + workgroups].tolist()


@pytest.mark.parametrize("workgroups", [1, 2, 33])
def test_workgroups_begin_in_order_or_in_reverse_order(workgroups):
    expected = list(range(workgroups))
    assert turns(workgroups) == expected
    assert turns(workgroups, reverse_workgroups=True, model_time=False) == expected[::-1]
