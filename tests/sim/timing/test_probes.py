"""Probes that were once cheaper than they should be, each beside a control with the same work."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gym.sim import constants as hw
from tests.sim.support import kernel_text, launch
from tests.sim.timing.workloads import Workload

LATENCIES = hw.MI300X.latencies
ROUNDS = 100
PAID = 1.03
"""A probe may be this much faster than its control."""
LONG_WAVE = """
	v_lshrrev_b32_e32 v5, 6, v0
	v_readfirstlane_b32 s9, v5
	s_movk_i32 s10, {short}
	s_lshl_b32 s11, s2, 4
	s_and_b32 s11, s11, {mask}
	s_or_b32 s11, s11, s9
	s_cmp_eq_u32 s11, 0
	s_cselect_b32 s10, 4000, s10
.LROUND:
	v_add_u32_e32 v1, v1, v1
	v_add_u32_e32 v1, v1, v1
	v_add_u32_e32 v1, v1, v1
	v_add_u32_e32 v1, v1, v1
	s_sub_u32 s10, s10, 1
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .LROUND
"""
READ_BACK = """
	s_load_dwordx2 s[6:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_movk_i32 s10, 100
	s_waitcnt lgkmcnt(0)
.LROUND:
	{instruction}
	s_waitcnt vmcnt(0) lgkmcnt(0)
	s_sub_u32 s10, s10, 1
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .LROUND
"""


def work(engine, *parts, **options):
    """Seconds of the work, without the launch."""
    return Workload(parts, rounds=ROUNDS, **options).seconds(engine) - hw.LAUNCH_S


def cycles_of(engine, instruction, before="", **options):
    """Cycles of one execution of an instruction that the next one waits for."""
    seconds = []
    for text in (instruction, "s_nop 0"):
        body = READ_BACK.format(instruction=text)
        kernel = engine.load(kernel_text(before + body, **options))
        out = [np.zeros(4096, np.int32)]
        result = launch(engine, kernel, (1,), (64,), out, model_time=True)
        assert result.fault is None, result.fault.message
        seconds.append(result.seconds)
    return (seconds[0] - seconds[1]) * hw.MI300X.clock_hz / ROUNDS


def long_wave(engine, short, mask, grid, waves, dead=0):
    text = kernel_text(LONG_WAVE.format(short=short, mask=mask))
    blocks = "".join(f".LD{i}:\n\ts_nop 0\n\ts_branch .LD{i}\n" for i in range(dead))
    text = text.replace("\ts_endpgm\n", "\ts_endpgm\n" + blocks, 1)
    out = [np.zeros(64, np.int32)]
    result = launch(engine, engine.load(text), (grid,), (64 * waves,), out, model_time=True)
    assert result.fault is None, result.fault.message
    return result.seconds


def test_waves_that_hit_the_cache_do_not_make_misses_cheap(engine):
    control = work(engine, "load")
    assert work(engine, "load", idle_waves=15, idle="one line") * PAID >= control


def test_workgroups_that_hit_the_cache_do_not_make_misses_cheap(engine):
    control = work(engine, "load")
    assert work(engine, "load", idle_workgroups=2000, idle="one line") * PAID >= control


def test_one_long_wave_is_not_the_mean_of_equal_ones(engine):
    control = long_wave(engine, short=1, mask=0xFFFF, grid=1, waves=1)
    assert long_wave(engine, short=100, mask=0xFFFF, grid=129, waves=16) * PAID >= control


@pytest.mark.parametrize("dead", [0, 8000])
def test_workgroups_without_work_do_not_share_that_of_others(engine, dead):
    control = long_wave(engine, short=1, mask=127 << 4, grid=64, waves=1)
    assert (
        long_wave(engine, short=1, mask=127 << 4, grid=8192, waves=1, dead=dead) * PAID >= control
    )


def test_cold_scalar_loads_are_as_slow_as_others(engine):
    assert work(engine, "scalar load") * PAID >= work(engine, "load")


def test_scalar_loads_of_one_line_keep_their_price(engine):
    assert work(engine, "scalar load", step=0) < 0.4 * work(engine, "scalar load")


def test_loads_past_the_first_cache_miss_it(engine):
    near, past = work(engine, "load", step=0), work(engine, "load past the L1", step=0)
    assert past - near > 0.9 * ROUNDS * (LATENCIES.l2 - LATENCIES.l1) / hw.MI300X.clock_hz


def test_an_emptied_cache_misses(engine):
    near = cycles_of(engine, "global_load_dword v3, v1, s[6:7]")
    emptied = cycles_of(engine, "buffer_inv sc1\n\tglobal_load_dword v3, v1, s[6:7]")
    assert emptied - near > 0.9 * (LATENCIES.l2 - LATENCIES.l1)


def test_atomics_on_one_word_of_lds_follow_each_other(engine):
    one, conflicts, free = (work(engine, "LDS atomic", lds=lds) for lds in (0, 128, 4))
    assert one * PAID >= conflicts
    assert one > 1.5 * free


def test_a_read_of_one_word_of_lds_is_a_broadcast(engine):
    assert work(engine, "LDS read", lds=0) <= work(engine, "LDS read", lds=4) * PAID


@pytest.mark.parametrize("part", ["scratch_load_dword v3, off, off", "scratch load by flat"])
def test_scratch_is_no_store(engine, part):
    """A load from scratch waits for the L2, however it is addressed."""
    before = ""
    if part.startswith("scratch load"):
        part = "flat_load_dword v3, v[8:9]"
        before = "\tv_mov_b32_e32 v8, 0\n\tv_mov_b32_e32 v9, 0x20000\n"
    assert cycles_of(engine, part, before, scratch=16) > 0.9 * LATENCIES.l2


def test_straight_code_is_not_cheaper_than_a_loop(engine):
    def seconds(loop):
        body = "\tv_add_u32_e32 v1, v1, v1\n" * (40 if loop else 4000)
        if loop:
            body = f"\ts_movk_i32 s10, 100\n.LROUND:\n{body}\ts_sub_u32 s10, s10, 1\n"
            body += "\ts_cmp_lg_u32 s10, 0\n\ts_cbranch_scc1 .LROUND\n"
        out = [np.zeros(64, np.int32)]
        return launch(
            engine, engine.load(kernel_text(body)), (1,), (64,), out, model_time=True
        ).seconds

    assert seconds(loop=False) >= 0.85 * seconds(loop=True)  # a loop has counters of its own
