"""No jump goes around the counters at the heads of blocks."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gym.sim.compiler.scalar_ops import ENDS_BLOCK
from tests.sim.support import kernel_text, launch

JUMP = """
	s_mov_b32 s22, {distance}
	s_getpc_b64 s[20:21]
	s_add_u32 s20, s20, s22
	s_addc_u32 s21, s21, 0
	s_setpc_b64 s[20:21]
"""
LONG_BRANCH = """
	s_getpc_b64 s[20:21]
	s_add_u32 s20, s20, {distance}
	s_addc_u32 s21, s21, 0
	s_setpc_b64 s[20:21]
"""
"""As compilers write it: the decoder reads the distance from the bytes."""
WORK = "\tv_add_u32_e32 v1, v1, v1\n"
CALL = """
	s_getpc_b64 s[20:21]
	s_add_u32 s20, s20, helper@rel32@lo+4
	s_addc_u32 s21, s21, helper@rel32@hi+12
	s_swappc_b64 s[30:31], s[20:21]
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v2, s[4:5]
"""
HELPER = """
	.type	helper,@function
helper:
	v_mov_b32_e32 v2, 7
	{back}
.Lfunc_end1:
"""
# Instructions after which control may be elsewhere, by the start of their names.
MOVES_CONTROL = ("s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call", "s_endpgm", "s_trap")


def outcome(engine, body, after="", **options):
    text = kernel_text(body)
    text = text.replace(".Lfunc_end0:\n", ".Lfunc_end0:\n" + after)
    out = np.zeros(64, np.int32)
    kernel = engine.load(text)
    return launch(engine, kernel, (1,), (64,), [out], **options), out


@pytest.mark.parametrize("distance", [0, 64, 0x140, 0x200, 4, 64 << 20, 0x7FFFFFFF])
def test_a_jump_behind_a_head_is_a_fault(engine, distance):
    result, _ = outcome(engine, JUMP.format(distance=distance) + 20 * WORK)
    assert result.fault is not None
    assert result.fault.kind == "jump"
    assert "computed address" in result.fault.message


@pytest.mark.parametrize("left_out", [0, 1, 7])
def test_all_work_behind_a_long_branch_is_counted(engine, left_out):
    """Its target is a head. The distance counts from behind `s_getpc_b64`; three moves follow."""
    result, _ = outcome(engine, LONG_BRANCH.format(distance=16 + 4 * left_out) + 20 * WORK)
    assert result.fault is None
    more, _ = outcome(engine, LONG_BRANCH.format(distance=16 + 4 * left_out) + 21 * WORK)
    other, _ = outcome(engine, LONG_BRANCH.format(distance=20 + 4 * left_out) + 20 * WORK)
    assert more.wave_instructions == result.wave_instructions + 1
    assert other.wave_instructions == result.wave_instructions - 1


def test_a_fault_in_all_workgroups_ends_a_modelled_launch(engine):
    """No workgroup ends, so that there is nothing to model."""
    kernel = engine.load(kernel_text(JUMP.format(distance=64) + WORK))
    out = [np.zeros(64, np.int32)]
    result = launch(engine, kernel, (300,), (256,), out, model_time=True)
    assert result.fault is not None
    assert result.fault.kind == "jump"


@pytest.mark.parametrize("audit", [False, True])
def test_calls_of_functions_return(engine, audit):
    back = HELPER.format(back="s_setpc_b64 s[30:31]")
    result, out = outcome(engine, CALL, back, audit=audit)
    assert result.fault is None, result.fault.message
    assert (out == 7).all()


@pytest.mark.parametrize("offset", [64, 128, -64])
def test_a_changed_return_address_is_a_fault(engine, offset):
    back = f"s_add_u32 s30, s30, {offset}\n\ts_setpc_b64 s[30:31]"
    result, _ = outcome(engine, CALL, HELPER.format(back=back))
    assert result.fault is not None
    assert result.fault.kind == "jump"


def test_a_return_address_from_memory_is_checked(engine):
    body = "\ts_load_dwordx2 s[4:5], s[0:1], 0x0\n\ts_waitcnt lgkmcnt(0)\n\ts_setpc_b64 s[4:5]\n"
    result, _ = outcome(engine, body + WORK)
    assert result.fault is not None
    assert result.fault.kind == "jump"


def test_a_loop_by_a_computed_jump_is_stopped(engine):
    """The loop goes through the head of the function, where the limit is looked at."""
    back = "s_getpc_b64 s[20:21]\n\ts_add_u32 s20, s20, helper@rel32@lo+4\n"
    back += "\ts_addc_u32 s21, s21, helper@rel32@hi+12\n\ts_setpc_b64 s[20:21]"
    result, _ = outcome(engine, CALL, HELPER.format(back=back), instruction_limit=1 << 20)
    assert result.fault is not None
    assert result.fault.kind in ("instruction_limit", "deadlock")


def test_what_moves_control_ends_a_block(engine):
    moves = {name for name in engine.library.handlers if name.startswith(MOVES_CONTROL)}
    assert moves
    assert moves <= ENDS_BLOCK
