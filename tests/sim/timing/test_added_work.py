"""More work never makes a launch faster, and neither do idle waves, workgroups or dead code.

The property is exact where all workgroups are recorded. Where some are, the time of a launch with
additions is compared with that of the plain one as a full recording gives it: it may be more, since
work that was not recorded is dear, but hardly less.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sim.timing.workloads import IDLE, PARTS, Workload

EXACT, SAMPLED = 0.99, 0.97
MAX_ROUNDS = 20_000  # of all waves together
PRIVATE_WAVES = 512  # waves that have memory of their own
ADDED = st.fixed_dictionaries(
    {
        "idle_workgroups": st.sampled_from((0, 1, 16, 300, 2000)),
        "idle_waves": st.sampled_from((0, 1, 4, 12)),
        "idle": st.sampled_from(IDLE),
        "idle_first": st.booleans(),
        "dead_blocks": st.sampled_from((0, 0, 500)),
        "idle_lanes": st.booleans(),
    }
)
WORK = st.builds(
    Workload,
    parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(tuple),
    rounds=st.sampled_from((1, 5, 20)),
    uneven=st.sampled_from((0, 0, 7)),
    step=st.sampled_from((0, 64, 256, 1024)),
    apart=st.sampled_from((0, 256, 8192)),
    lds=st.sampled_from((0, 4, 128)),
    workgroups=st.sampled_from((1, 2, 16, 64, 300)),
    waves=st.sampled_from((1, 2, 4)),
    half=st.booleans(),
).filter(lambda w: w.workgroups * w.waves * (w.rounds + 32 * bool(w.uneven)) < MAX_ROUNDS)
PRIVATE = WORK.map(lambda w: replace(w, step=min(w.step, 64), apart=8192)).filter(
    lambda w: w.workgroups * w.waves <= PRIVATE_WAVES
)
SHARED = PRIVATE.map(lambda w: replace(w, step=4132, apart=256))
"""Each line of a round but the first is shared with a neighbour."""
SEEDS = st.integers(0, 1000)
QUICK = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
LONG = settings(QUICK, max_examples=600)


def check_all_recorded(engine, work, added):
    plain = work.seconds(engine, full_trace=True)
    assert replace(work, **added).seconds(engine, full_trace=True) >= EXACT * plain


def check_some_recorded(engine, work, added, seed):
    plain = work.seconds(engine, full_trace=True)
    assert replace(work, **added).seconds(engine, seed) >= SAMPLED * plain


def check_order(engine, work):
    """As long as each workgroup has a place of its own, the order does not matter."""
    plain = work.seconds(engine, full_trace=True)
    assert replace(work, reverse=True).seconds(engine, full_trace=True) >= EXACT * plain


def check_more_work(engine, work, part):
    plain = work.seconds(engine, full_trace=True)
    more = replace(work, parts=(*work.parts, part))
    assert more.seconds(engine, full_trace=True) >= EXACT * plain


@QUICK
@given(WORK, ADDED)
def test_additions_do_not_help(engine, work, added):
    check_all_recorded(engine, work, added)


@QUICK
@given(st.one_of(PRIVATE, SHARED), ADDED, SEEDS)
def test_additions_do_not_help_where_some_are_recorded(engine, work, added, seed):
    check_some_recorded(engine, work, added, seed)


@settings(QUICK, max_examples=12)
@given(PRIVATE)
def test_another_order_does_not_help(engine, work):
    check_order(engine, work)


@settings(QUICK, max_examples=12)
@given(WORK, st.sampled_from(PARTS))
def test_more_work_does_not_help(engine, work, part):
    check_more_work(engine, work, part)


@pytest.mark.sweep
@pytest.mark.timeout(3600)
@LONG
@given(WORK, ADDED)
def test_many_additions_do_not_help(engine, work, added):
    check_all_recorded(engine, work, added)


@pytest.mark.sweep
@pytest.mark.timeout(3600)
@LONG
@given(st.one_of(PRIVATE, SHARED), ADDED, SEEDS)
def test_many_additions_do_not_help_where_some_are_recorded(engine, work, added, seed):
    check_some_recorded(engine, work, added, seed)


@pytest.mark.sweep
@pytest.mark.timeout(3600)
@settings(LONG, max_examples=300)
@given(WORK, st.sampled_from(PARTS))
def test_much_more_work_does_not_help(engine, work, part):
    check_more_work(engine, work, part)


@pytest.mark.sweep
@pytest.mark.timeout(3600)
@settings(LONG, max_examples=300)
@given(PRIVATE)
def test_many_other_orders_do_not_help(engine, work):
    check_order(engine, work)
