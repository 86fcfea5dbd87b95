"""Draws of sampled workgroups: calls repeat them, trials leave them as they are."""

from __future__ import annotations

import pytest

from kernel_gym.devices.sim.sample_draws import SampleDraws


@pytest.fixture
def draws() -> SampleDraws:
    draws = SampleDraws(alike=False)
    draws.seed(7)
    return draws


def test_a_repeated_call_has_the_draws_of_the_last_one(draws):
    draws.begin(tuning=False)
    first = [draws.draw(), draws.draw()]
    draws.begin(tuning=False, again=True)
    assert [draws.draw(), draws.draw()] == first
    draws.begin(tuning=False)
    assert draws.draw() not in first


def test_a_trial_changes_no_draw_of_a_later_call(draws):
    draws.begin(tuning=True, samples=3)
    trial = draws.draw()
    draws.begin(tuning=False)
    other = SampleDraws(alike=False)
    other.seed(7)
    assert draws.draw() == other.draw() != trial


def test_calls_with_one_draw_are_sampled_alike(draws):
    draws.begin(tuning=False, samples=3)
    first = draws.draw()
    draws.begin(tuning=False, samples=3)
    assert draws.draw() == first


def test_own_kernels_are_sampled_alike_except_in_a_call_with_a_draw():
    draws = SampleDraws(alike=True)
    draws.begin(tuning=False)
    assert [draws.draw(), draws.draw()] == [0, 0]
    draws.begin(tuning=False, samples=3)
    assert draws.draw() != draws.draw()
