"""Faulty kernels become values: nothing crashes, and the message says what to look at."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gym.sim.engine.engine import Engine
from kernel_gym.sim.engine.faults import nearest_allocation
from tests.sim.support import kernel_text, launch

LOAD = "s_load_dwordx2 s[4:5], s[0:1], 0x0\n\tv_lshlrev_b32_e32 v1, 2, v0\n\t"


def fault_of(engine: Engine, body: str, values=None, grid=(1,), block=(64,), **options):
    lds, scratch = options.pop("lds", 0), options.pop("scratch", 0)
    values = [np.zeros(64, np.uint32)] if values is None else values
    kernel = engine.load(kernel_text("\t" + LOAD + body, len(values), lds, scratch))
    return launch(engine, kernel, grid, block, values, **options).fault


def test_read_past_the_end_names_the_allocation(engine):
    fault = fault_of(engine, "global_load_dword v2, v1, s[4:5] offset:16")
    assert fault.kind == "out_of_bounds_read"
    assert fault.lane == 60
    assert fault.size == 4
    assert "0 bytes past the end of argument 0 (256 bytes)" in fault.message
    assert "global_load_dword v2, v1, s[4:5] offset:16" in fault.message


def test_write_out_of_bounds_does_not_write(engine):
    memory = np.zeros(128, np.uint32)
    kernel = engine.load(kernel_text("\t" + LOAD + "global_store_dword v1, v1, s[4:5] offset:-4"))
    engine.set_allocations([(memory.ctypes.data, 256, "first half")])
    address = int(memory.ctypes.data)
    result = engine.launch(kernel, (1,), (64,), address.to_bytes(8, "little"), model_time=False)
    assert result.fault.kind == "out_of_bounds_write"
    assert result.fault.address == address - 4
    assert not memory.any()


def test_wild_pointer_is_a_fault(engine):
    body = "v_mov_b32_e32 v2, 0x1234\n\tv_mov_b32_e32 v3, 0x5678\n\tflat_load_dword v4, v[2:3]"
    assert fault_of(engine, body).kind == "out_of_bounds_read"
    body = "s_mov_b64 s[8:9], 64\n\ts_load_dword s10, s[8:9], 0x0"
    fault = fault_of(engine, body)
    assert (fault.kind, fault.address) == ("out_of_bounds_read", 64)


def test_inactive_lanes_are_not_checked(engine):
    body = "s_mov_b64 exec, 0xf\n\tglobal_load_dword v2, v1, s[4:5] offset:240"
    assert fault_of(engine, body) is None


def test_buffer_range_check_comes_before_the_fault(engine):
    setup = "s_mov_b32 s6, 0x100\n\ts_mov_b32 s7, 0x27000\n\t"
    inside = setup + "buffer_load_dword v2, v1, s[4:7], 0 offen offset:128"
    assert fault_of(engine, inside) is None
    too_large = setup.replace("0x100", "0x7ffffffe")
    fault = fault_of(engine, too_large + "buffer_store_dword v2, v1, s[4:7], 0 offen offset:128")
    assert (fault.kind, fault.lane) == ("out_of_bounds_write", 32)


def test_lds_and_scratch_are_checked(engine):
    fault = fault_of(engine, "ds_read_b32 v2, v1", lds=128)
    assert (fault.kind, fault.lane, fault.address) == ("lds_out_of_bounds", 32, 128)
    assert fault_of(engine, "ds_write_b32 v1, v1", lds=256) is None
    assert fault_of(engine, "scratch_store_dword off, v1, off offset:16", scratch=16) is not None
    assert fault_of(engine, "scratch_store_dword off, v1, off offset:12", scratch=16) is None


def test_misaligned_atomic(engine):
    body = "v_mov_b32_e32 v3, 1\n\tv_mov_b32_e32 v1, 2\n\tglobal_atomic_add v1, v3, s[4:5]"
    assert fault_of(engine, body).kind == "misaligned"


def test_kernel_arguments_are_read_only(engine):
    body = "v_mov_b32_e32 v2, s0\n\tv_mov_b32_e32 v3, s1\n\tflat_load_dword v4, v[2:3]"
    assert fault_of(engine, body) is None
    fault = fault_of(
        engine, body.replace("flat_load_dword v4, v[2:3]", "flat_store_dword v[2:3], v4")
    )
    assert fault.kind == "out_of_bounds_write"


@pytest.mark.parametrize("threads", [1, 2])
def test_endless_loop_ends_at_a_limit(threads):
    engine = Engine(threads=threads)
    # It counts, so that its state never repeats: otherwise it may be called a deadlock first.
    counting = ".LBB0_1:\n\ts_add_u32 s6, s6, 1\n\ts_branch .LBB0_1"
    fault = fault_of(engine, counting, grid=(4,), time_limit_s=0.05)
    assert fault.kind == "time_limit"
    assert fault.instruction.split()[0] in ("s_add_u32", "s_branch")
    body = ".LBB0_1:\n\ts_branch .LBB0_1"
    assert fault_of(engine, body, instruction_limit=100_000).kind == "instruction_limit"


def test_trap(engine):
    assert fault_of(engine, "s_trap 2").kind == "trap"


def test_engine_works_after_a_fault(engine):
    fault_of(engine, "global_load_dword v2, v1, s[4:5] offset:16")
    memory = np.zeros(64, np.uint32)
    assert fault_of(engine, "global_store_dword v1, v0, s[4:5]", [memory]) is None
    assert memory.tolist() == list(range(64))


def test_first_faulty_workgroup_is_reported():
    # workgroups from 3 on write past the end
    body = (
        "s_lshl_b32 s2, s2, 8\n\ts_add_u32 s4, s4, s2\n\ts_addc_u32 s5, s5, 0\n\t"
        "global_store_dword v1, v0, s[4:5]"
    )
    for threads in (1, 2):
        memory = np.zeros(192, np.uint32)
        fault = fault_of(Engine(threads=threads), body, [memory], grid=(200,))
        assert fault.workgroup == (3, 0, 0)


SPIN = """s_waitcnt lgkmcnt(0)
	v_mov_b32_e32 v2, 0
	v_mov_b32_e32 v3, 1
	s_mov_b64 exec, 1
	global_atomic_add v2, v3, s[4:5]
.LBB0_1:
	global_load_dword v4, v2, s[4:5] sc0 sc1
	s_waitcnt vmcnt(0)
	v_readfirstlane_b32 s6, v4
	s_cmp_lt_u32 s6, 8
	s_cbranch_scc1 .LBB0_1"""


@pytest.mark.parametrize("threads", [1, 2])
def test_workgroups_that_wait_for_each_other_make_progress(threads):
    counter = np.zeros(64, np.uint32)
    assert fault_of(Engine(threads=threads), SPIN, [counter], grid=(8,)) is None
    assert counter[0] == 8


def test_waiting_for_a_workgroup_that_never_comes_is_a_deadlock():
    fault = fault_of(Engine(threads=1), SPIN, grid=(7,), time_limit_s=100)
    assert fault.kind == "deadlock"
    assert "0 workgroups have not started" in fault.message


BARRIER_SPIN = SPIN.replace("\ts_mov_b64 exec, 1\n", "").replace(
    "s_cmp_lt_u32 s6, 8", "s_barrier\n\ts_cmp_lt_u32 s6, 1024"
)
"""The same with two waves, which meet at a barrier in each turn of the loop."""


@pytest.mark.parametrize("threads", [1, 2])
def test_workgroups_that_wait_in_a_loop_with_a_barrier_make_progress(threads):
    counter = np.zeros(64, np.uint32)
    engine = Engine(threads=threads)
    assert fault_of(engine, BARRIER_SPIN, [counter], grid=(8,), block=(128,)) is None
    assert counter[0] == 1024


def test_a_loop_with_a_barrier_that_waits_for_nobody_is_a_deadlock():
    fault = fault_of(Engine(threads=1), BARRIER_SPIN, grid=(7,), block=(128,), time_limit_s=100)
    assert fault.kind == "deadlock"


@pytest.mark.parametrize("threads", [1, 2])
def test_an_endless_loop_with_a_barrier_ends_at_a_limit(threads):
    counting = ".LBB0_1:\n\ts_add_u32 s6, s6, 1\n\ts_barrier\n\ts_branch .LBB0_1"
    fault = fault_of(Engine(threads=threads), counting, grid=(4,), block=(128,), time_limit_s=0.05)
    assert fault.kind == "time_limit"


def test_a_loop_whose_state_never_comes_back_is_a_time_limit():
    body = "\ts_mov_b64 s[4:5], 0\n.LBB0_1:\n\ts_add_u32 s4, s4, 1\n\ts_addc_u32 s5, s5, 0\n"
    body += "\ts_branch .LBB0_1"
    assert fault_of(Engine(threads=1), body, time_limit_s=0.1).kind == "time_limit"


def test_nearest_allocation():
    allocations = [(1000, 100, "x"), (2000, 50, "y")]
    assert nearest_allocation(1100, allocations) == "0 bytes past the end of x (100 bytes)"
    assert nearest_allocation(1990, allocations) == "10 bytes before y (50 bytes)"
    assert nearest_allocation(1050, allocations) == "50 bytes into x (100 bytes)"
    assert nearest_allocation(5, []) == "no memory is allocated"
