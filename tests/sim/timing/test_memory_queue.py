"""How many lines a compute unit waits for: a stream of loads beside what an MI355X reads."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from kernel_gym.sim import constants as hw
from kernel_gym.sim.constants import FIGURES, SAME_TIMES
from tests.sim.support import kernel_text, launch

_STREAM = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 4, v0
	s_mul_i32 s6, s2, {chunk}
	s_waitcnt lgkmcnt(0)
	s_add_u32 s4, s4, s6
	s_addc_u32 s5, s5, 0
	s_movk_i32 s10, {rounds}
{loads}
.LROUND:
{loads}
	s_waitcnt vmcnt({count})
	s_sub_u32 s10, s10, 1
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .LROUND
	s_waitcnt vmcnt(0)
"""
_LOAD = "\tglobal_load_dwordx4 v[8:11], v1, s[4:5]\n\tv_add_u32_e32 v1, {step}, v1"


def stream_seconds(engine, arch, workgroups, waves, loads, rounds):
    """Modelled seconds of workgroups that read memory once, `loads` to twice as many at a time."""
    block = 64 * waves
    chunk = 16 * block * loads * (rounds + 1)
    parts = "\n".join([_LOAD.format(step=16 * block)] * loads)
    body = _STREAM.format(chunk=chunk, rounds=rounds, loads=parts, count=loads)
    kernel = engine.load(kernel_text(body, arch=arch))
    memory = [np.zeros(workgroups * chunk, np.uint8)]
    result = launch(engine, kernel, (workgroups,), (block,), memory, model_time=True)
    assert result.fault is None, result.fault.message
    return result.seconds


def gigabytes_per_second(engine, arch, workgroups, waves, loads):
    """Rate of each workgroup, without its start and end."""
    rounds = 2048 // (waves * loads)
    short, long = (
        stream_seconds(engine, arch, workgroups, waves, loads, each)
        for each in (rounds, 3 * rounds)
    )
    return 2 * rounds * loads * waves * 1024 / (long - short) / 1e9


MEASURED = {
    (32, 1, 1): 5.2,
    (32, 1, 4): 16.7,
    (32, 2, 4): 28.6,
    (32, 2, 8): 46.4,
    (32, 4, 1): 18.8,
    (32, 4, 2): 32.0,
    (32, 4, 4): 54.1,
    (32, 8, 2): 55.7,
    (32, 8, 4): 57.6,
    (32, 8, 8): 58.2,
    (32, 16, 4): 60.1,
    (1, 8, 4): 62.4,
}
"""Gigabytes a second of a compute unit of an MI355X from HBM, by units at work, waves and loads.

Source: jamesbowley/gfx950-gluon-tutorials@2fdc8b59, A.csv and B.csv in
experiments/hbm_bandwidth_xcd/results, in the kernel. The number of lines was chosen by them.
"""
VERSION_10 = {
    ("gfx90a", 1, 1, 1, 256): "0x1.a84cff0586e0bp-15",
    ("gfx90a", 32, 8, 4, 32): "0x1.bbf2e068585d1p-15",
    ("gfx90a", 400, 4, 4, 8): "0x1.951cd16bc646ap-15",
    ("gfx942", 1, 1, 1, 256): "0x1.ee08ac08722c9p-15",
    ("gfx942", 32, 8, 4, 32): "0x1.048e8e304cfa5p-14",
    ("gfx942", 400, 4, 4, 8): "0x1.341bba217824cp-16",
}
"""Seconds of streams with version 10 of the model, which version 11 changed for gfx950 alone."""


@pytest.fixture(scope="module")
def rates(engine):
    return {stream: gigabytes_per_second(engine, "gfx950", *stream) for stream in MEASURED}


def test_a_compute_unit_of_gfx950_reads_as_fast_as_measured(rates):
    errors = [abs(math.log(rates[stream] / measured)) for stream, measured in MEASURED.items()]
    assert statistics.mean(errors) < 0.1
    assert max(errors) < 0.25


@pytest.mark.parametrize(("units", "measured"), [(64, 3395), (128, 5538), (256, 6039)])
def test_many_units_of_gfx950_read_as_fast_as_measured(engine, units, measured):
    """Gigabytes a second of A.csv in the same folder; no number was chosen by them."""
    short, long = (stream_seconds(engine, "gfx950", units, 8, 4, each) for each in (8, 24))
    rate = 16 * 32 * 1024 * units / (long - short) / 1e9
    assert rate == pytest.approx(measured, rel=0.15)


@pytest.mark.parametrize("arch", FIGURES)
def test_a_compute_unit_waits_for_the_lines_of_its_chip(engine, arch):
    """By Little's law: with 64 KB of loads at a time, it waits for as many lines as it may."""
    figures = FIGURES[arch]
    most = figures.miss_lines * hw.LINE_BYTES / figures.latencies.hbm * figures.clock_hz / 1e9
    assert 0.85 * most < gigabytes_per_second(engine, arch, 1, 8, 4) < 1.01 * most


@pytest.mark.parametrize("launched", VERSION_10)
def test_the_other_chips_keep_the_times_of_version_10_bit_for_bit(engine, launched):
    assert FIGURES[launched[0]].miss_lines == hw.MISS_LINES == 64
    assert {"9", "10", hw.TIMING_MODEL_VERSION} == SAME_TIMES[launched[0]]
    assert stream_seconds(engine, *launched).hex() == VERSION_10[launched]


def test_older_times_of_gfx950_are_other_times(engine):
    assert SAME_TIMES["gfx950"] == {hw.TIMING_MODEL_VERSION}
    assert stream_seconds(engine, "gfx950", 32, 8, 4, 32).hex() != "0x1.ca3d396858063p-15"
