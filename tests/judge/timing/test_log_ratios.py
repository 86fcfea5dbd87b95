"""The interval of a mean log ratio, how many pairs it needs, and the noise floor."""

import random

import pytest

from kernel_gym.judge.protocol import TIMING
from kernel_gym.judge.timing.log_ratios import (
    LogRatioInterval,
    interval,
    pairs_needed,
    quantile_of_noise,
    two_stage_interval,
)


def test_one_hiccup_does_not_decide():
    calm = interval([0.01, 0.011, 0.009, 0.01, 0.012, 0.008])
    shaken = interval([0.01, 0.011, 0.009, 0.01, 0.012, 1.1])
    assert abs(shaken.mean - calm.mean) < 0.002
    assert shaken.half < 0.02


def test_the_noise_floor_is_a_high_quantile_of_both_signs():
    assert quantile_of_noise({"a": [0.001] * 50, "b": [-0.02] * 50}) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("mean", "half", "settled"),
    [
        (0.0, 0.014, True),
        (0.0, 0.016, False),
        (1.4, 0.027, True),
        (1.4, 0.029, False),
        (2.4, 0.05, True),  # above ten times the baseline, of which nothing is paid
        (2.4, 0.15, False),
    ],
)
def test_an_interval_is_settled_when_it_is_narrow_or_beyond_pay(mean, half, settled):
    assert LogRatioInterval(mean, half).settled is settled
    assert LogRatioInterval(-mean, half).settled is settled


def two_stages(draw, spread, truth):
    """Whether the interval of Stein's procedure covers the truth, and how many pairs it took."""
    effects = [draw.gauss(truth, spread) for _ in range(TIMING.min_pairs)]
    effects += [draw.gauss(truth, spread) for _ in range(pairs_needed(effects) - len(effects))]
    stated = two_stage_interval(effects)
    return abs(stated.mean - truth) <= stated.half, len(effects)


@pytest.mark.parametrize("spread", [0.001, 0.01, 0.03, 0.06])
def test_the_number_of_pairs_is_fixed_so_that_intervals_keep_their_coverage(spread):
    draw = random.Random(7)
    covered, pairs = zip(*(two_stages(draw, spread, 0.02) for _ in range(1500)), strict=True)
    assert 0.935 <= sum(covered) / len(covered) <= 0.975
    assert all(TIMING.min_pairs <= count <= TIMING.max_pairs for count in pairs)
