"""The interval of a mean log ratio, how many pairs it needs, and the noise floor."""

import math
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


@pytest.mark.parametrize(("half", "beyond"), [(0.05, True), (0.15, False)])
def test_above_ten_times_the_baseline_nothing_is_paid(half, beyond):
    for mean in (2.4, -2.4):
        assert LogRatioInterval(mean, half).is_beyond_pay is beyond


@pytest.mark.parametrize(("mean", "width"), [(0.0, 0.015), (1.4, 0.028), (-1.4, 0.028)])
def test_the_half_width_that_is_wanted_follows_the_effect(mean, width):
    assert LogRatioInterval(mean, 0.1).width == pytest.approx(width)


def test_intervals_of_a_split_keep_their_coverage_too():
    draw, spreads = random.Random(7), (0.002, 0.01, 0.03, 0.06)
    covered = [0] * len(spreads)
    for _ in range(800):
        split = [[draw.gauss(0.02, s) for _ in range(TIMING.min_pairs)] for s in spreads]
        for number, pairs in enumerate(pairs_needed(split)):
            effects = split[number]
            effects += [draw.gauss(0.02, spreads[number]) for _ in range(pairs - len(effects))]
            stated = two_stage_interval(effects)
            covered[number] += abs(stated.mean - 0.02) <= stated.half
    assert all(0.93 <= one / 800 <= 0.98 for one in covered), covered


def drawn(spread, mean=0.0, seed=3):
    draw = random.Random(seed)
    return [draw.gauss(mean, spread) for _ in range(TIMING.min_pairs)]


def half_after(effects, pairs):
    return interval(effects).half * math.sqrt(len(effects) / pairs)


def test_quiet_workloads_need_no_second_stage_and_pay_for_noisy_ones():
    quiet, noisy = drawn(0.001), drawn(0.03)
    alone = pairs_needed([noisy])[0]
    assert half_after(noisy, alone) <= TIMING.half_width
    *first, last = pairs_needed([quiet, quiet, quiet, noisy])
    assert first == [TIMING.min_pairs] * 3
    assert TIMING.min_pairs <= last < alone


def test_the_least_pairs_keep_the_budget_of_a_split():
    split = [drawn(spread, seed=seed) for seed, spread in enumerate((0.02, 0.03, 0.05, 0.08))]
    needed = pairs_needed(split)
    halves = [half_after(effects, pairs) for effects, pairs in zip(split, needed, strict=True)]
    assert sum(halves) <= len(split) * TIMING.half_width
    for more in range(4):  # two pairs less of one workload and more of another do not help
        for less in range(4):
            other = [n + 6 * (i == more) - 8 * (i == less) for i, n in enumerate(needed)]
            if more != less and other[less] >= TIMING.min_pairs:
                again = sum(half_after(e, n) for e, n in zip(split, other, strict=True))
                assert again > sum(halves)


def test_a_workload_beyond_pay_neither_needs_pairs_nor_takes_of_the_budget():
    noisy, beyond = drawn(0.03), drawn(0.05, mean=3.0)
    assert pairs_needed([noisy, beyond]) == [*pairs_needed([noisy]), TIMING.min_pairs]


def test_no_workload_has_more_than_the_most_pairs():
    assert pairs_needed([drawn(0.5), drawn(0.001)])[0] == TIMING.max_pairs


def two_stages(draw, spread, truth):
    """Whether the interval of Stein's procedure covers the truth, and how many pairs it took."""
    effects = [draw.gauss(truth, spread) for _ in range(TIMING.min_pairs)]
    effects += [draw.gauss(truth, spread) for _ in range(pairs_needed([effects])[0] - len(effects))]
    stated = two_stage_interval(effects)
    return abs(stated.mean - truth) <= stated.half, len(effects)


@pytest.mark.parametrize("spread", [0.001, 0.01, 0.03, 0.06])
def test_the_number_of_pairs_is_fixed_so_that_intervals_keep_their_coverage(spread):
    draw = random.Random(7)
    covered, pairs = zip(*(two_stages(draw, spread, 0.02) for _ in range(1500)), strict=True)
    assert 0.935 <= sum(covered) / len(covered) <= 0.975
    assert all(TIMING.min_pairs <= count <= TIMING.max_pairs for count in pairs)
