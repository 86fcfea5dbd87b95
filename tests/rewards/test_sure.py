"""Tests the reward of a modelled speedup that may be wrong by a factor."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.records import Clock, Evaluation
from kernel_gym.rewards import get_reward
from kernel_gym.rewards.sure import sure_speedup
from tests.records import passing, workload

REWARD, CALIBRATED = get_reward("kernel-opt"), get_reward("kernel-opt-calibrated")
speedups = st.floats(1e-3, 1e3)


def _with_factor(record: Evaluation, factor: float | None) -> Evaluation:
    known = [w.model_copy(update={"speedup_factor": factor}) for w in record.workloads]
    return record.model_copy(update={"workloads": tuple(known)})


@given(speedups, speedups)
def test_a_measured_speedup_earns_what_the_default_pays(train, unseen):
    measured = passing(train, unseen).model_copy(update={"clock": Clock.MEASURED})
    assert CALIBRATED(measured).value == pytest.approx(REWARD(measured).value)


@given(speedups, speedups, st.none() | st.floats(1.0, 10.0))
def test_a_modelled_speedup_earns_no_more_than_the_default_pays(train, unseen, factor):
    record = _with_factor(passing(train, unseen), factor)
    assert CALIBRATED(record).value <= REWARD(record).value + 1e-12


@pytest.mark.parametrize(
    ("speedup", "factor", "sure"),
    [(8.0, 4.0, 2.0), (3.0, 4.0, 1.0), (8.0, None, 1.0), (0.5, 4.0, 0.5), (0.5, None, 0.5)],
)
def test_a_modelled_speedup_is_sure_of_what_its_factor_leaves(speedup, factor, sure):
    result = workload(speedup=speedup).model_copy(update={"speedup_factor": factor})
    assert sure_speedup(result, Clock.MODELLED) == sure


@pytest.mark.parametrize("factor", [math.nan, 0.0, 0.5, -1.0])
def test_a_factor_that_is_none_makes_nothing_sure(factor):
    result = workload(speedup=8.0).model_copy(update={"speedup_factor": factor})
    assert sure_speedup(result, Clock.MODELLED) == 1.0


def test_an_uncalibrated_clock_pays_for_correctness_alone():
    result = CALIBRATED(_with_factor(passing(9.0, 9.0), None))
    assert result.value == pytest.approx(0.15)
    assert result.terms["calibrated_share"] == 0.0
    assert CALIBRATED(_with_factor(passing(9.0, 9.0), 3.0)).value == pytest.approx(
        REWARD(passing(3.0, 3.0)).value
    )
