"""The estimators against closed forms, enumeration and scipy."""

import itertools
import math
import statistics

import numpy as np
import pytest
from scipy import stats

from kernel_gym.analysis.estimators import (
    RESAMPLED,
    best_at_k,
    explained_deviance,
    paired,
    pass_at_k,
    ratio,
    sign_flip,
)

VALUES = [0.0, 0.0, 0.7, 1.3, 1.3, 4.0]


@pytest.mark.parametrize("k", range(1, 7))
def test_pass_at_k_is_the_share_of_subsets_with_a_success_and_the_products_of_chen(k):
    n, correct = len(VALUES), sum(v > 1 for v in VALUES)
    subsets = list(itertools.combinations(VALUES, k))
    chance = pass_at_k(n, correct, k)
    assert chance == pytest.approx(statistics.fmean(max(s) > 1 for s in subsets))
    product = 1.0 - np.prod(1.0 - k / np.arange(n - correct + 1, n + 1)) if n - correct >= k else 1
    assert chance == pytest.approx(product)
    assert chance == pytest.approx(1 - stats.hypergeom(n, correct, k).pmf(0))


@pytest.mark.parametrize("k", range(1, 7))
def test_best_at_k_is_the_mean_of_the_maxima_of_all_subsets(k):
    subsets = itertools.combinations(VALUES, k)
    assert best_at_k(VALUES[::-1], k) == pytest.approx(statistics.fmean(map(max, subsets)))
    ones = [float(v > 1) for v in VALUES]
    assert best_at_k(ones, k) == pytest.approx(pass_at_k(6, 3, k))


def test_pass_at_k_has_no_bias():
    chance, n, k = 0.3, 6, 3
    expected = sum(stats.binom(n, chance).pmf(c) * pass_at_k(n, c, k) for c in range(n + 1))
    assert expected == pytest.approx(1 - (1 - chance) ** k)


@pytest.mark.parametrize("k", [0, 7])
def test_more_than_there_is_is_refused(k):
    with pytest.raises(ValueError, match="expected 1 to the number of attempts, 6"):
        pass_at_k(6, 3, k)
    with pytest.raises(ValueError, match="expected 1"):
        best_at_k(VALUES, k)


def test_the_interval_is_that_of_scipy():
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 5, size=30)
    sums = counts * rng.normal(0.3, 0.5, size=30)

    def statistic(top, bottom, axis=-1):
        return np.exp(top.sum(axis=axis) / bottom.sum(axis=axis))

    other = stats.bootstrap(
        (sums, counts),
        statistic,
        paired=True,
        vectorized=True,
        n_resamples=20 * RESAMPLED,
        method="percentile",
        rng=2,
    ).confidence_interval
    estimate = ratio(sums, counts, np.exp)
    assert estimate.value == pytest.approx(statistic(sums, counts))
    width = other.high - other.low
    assert estimate.low == pytest.approx(other.low, abs=0.06 * width)
    assert estimate.high == pytest.approx(other.high, abs=0.06 * width)
    assert estimate == ratio(sums, counts, np.exp)
    assert estimate != ratio(sums, counts, np.exp, seed=1)


def test_a_paired_interval_is_that_of_all_resamples():
    before, after = [0.1, 0.2, 0.3, 0.3, 0.2], [0.2, 0.5, 0.4, 0.9, 0.2]
    differences = np.subtract(after, before)
    means = [np.mean(drawn) for drawn in itertools.product(differences, repeat=5)]
    estimate = paired(before, after)
    assert estimate.value == pytest.approx(0.22)
    assert estimate.low == pytest.approx(np.quantile(means, 0.025), abs=0.01)
    assert estimate.high == pytest.approx(np.quantile(means, 0.975), abs=0.01)
    assert paired(before, after) == estimate != paired(before, after, seed=1)
    assert paired([0.5], [0.7]).low is None


def test_one_task_has_no_interval_and_none_has_no_value():
    one = ratio([2.0, 0.0], [4, 0])
    assert (one.value, one.low, one.high) == (0.5, None, None)
    assert ratio([], []).value is None


def test_a_sign_flip_test_counts_every_assignment_of_signs():
    after = [3.0, 1.0, 2.0, -1.0]
    sums = [np.dot(signs, after) for signs in itertools.product((1, -1), repeat=4)]
    both_sides = 2 * np.mean([total >= sum(after) for total in sums])
    assert sign_flip([0.0] * 4, after) == pytest.approx(both_sides)
    assert sign_flip([1.0, 2.0], [1.0, 2.0]) == 1.0
    rng = np.random.default_rng(0)
    assert 0.05 < sign_flip(rng.normal(size=40), rng.normal(size=40)) <= 1.0


def test_explained_deviance_is_the_g_test_over_the_null_deviance():
    groups, tried = list("aaabbbccc"), np.full(9, 10)
    passed = np.array([9, 8, 10, 5, 4, 6, 1, 0, 2])
    deviance = explained_deviance(groups, passed, tried)
    table = [[passed[i : i + 3].sum(), (tried - passed)[i : i + 3].sum()] for i in (0, 3, 6)]
    g, _, degrees, _ = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
    share = passed.sum() / tried.sum()
    null = 2 * tried.sum() * stats.entropy([share, 1 - share])
    assert deviance.explained == pytest.approx(g / null)
    assert deviance.degrees == degrees
    assert deviance.p_value < 0.01
    assert 0 < deviance.expected < deviance.explained


def test_a_factor_that_means_nothing_explains_what_chance_does():
    rng = np.random.default_rng(0)
    deviance = explained_deviance(list("abcd") * 10, rng.binomial(4, 0.5, 40), [4] * 40)
    assert deviance.p_value > 0.1
    assert deviance.explained < 4 * deviance.expected


def test_the_p_value_is_the_share_of_divisions_that_explain_as_much():
    groups, solved = list("aaaabbbb"), [1, 1, 1, 0, 1, 0, 0, 0]
    deviance = explained_deviance(groups, solved, [1] * 8)
    null, model = 8 * math.log(0.5), 2 * (3 * math.log(0.75) + math.log(0.25))
    assert deviance.explained == pytest.approx(1 - model / null)
    # 3 or 1 of 4 solved in "a" and the rest in "b", or 4 and 0: (16 + 16 + 1 + 1) of 70 divisions
    assert deviance.p_value == pytest.approx(34 / 70, abs=0.05)


def test_a_factor_that_decides_everything_explains_everything():
    deviance = explained_deviance(list("a" * 6 + "b" * 6), [1] * 6 + [0] * 6, [1] * 12)
    assert deviance.explained == pytest.approx(1)
    assert deviance.p_value < 0.02


@pytest.mark.parametrize(("groups", "passed"), [("aa", [1, 0]), ("ab", [1, 1]), ("ab", [0, 0])])
def test_nothing_to_explain_is_nothing(groups, passed):
    assert explained_deviance(list(groups), passed, [1, 1]) is None


def test_one_pair_shows_no_difference():
    assert sign_flip([0.0], [1.0]) == 1.0
