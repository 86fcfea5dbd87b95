"""Metrics of suites against figures worked by hand."""

import math

import pytest

from kernel_gym.analysis.estimators import pass_at_k
from kernel_gym.analysis.suite_metrics import (
    accuracy,
    arena_score,
    efficiency,
    speedup_of_rows,
    speedup_of_sums,
)


def test_accuracy_divides_by_all_tasks():
    assert accuracy([True, True, False, False, False]) == 0.4
    assert accuracy([]) == 0


def test_the_two_speedups_differ_where_a_long_row_decides():
    rows = [(1.0, 2.0), (100.0, 50.0)]
    assert speedup_of_sums(rows) == pytest.approx(101 / 52)
    assert speedup_of_rows(rows) == pytest.approx((0.5 + 2.0) / 2)


def test_efficiency_is_the_best_share_of_either_peak():
    bandwidth, operations = 2e12, 300e12  # the peaks, per second
    work = [(2e9, 100e9), (1e9, 300e9)]  # bytes and operations of two rows
    seconds = [2e-3, 2e-3]
    rates = [(moved / t, done / t) for (moved, done), t in zip(work, seconds, strict=True)]
    theirs = max(max(r for r, _ in rates) / bandwidth, max(r for _, r in rates) / operations)
    bounds = [max(moved / bandwidth, done / operations) for moved, done in work]
    assert efficiency(list(zip(bounds, seconds, strict=True))) == pytest.approx(theirs) == 0.5
    assert efficiency([]) == 0


@pytest.mark.parametrize(
    ("compiled", "correct", "speedup", "score"),
    [(False, False, 0, 0), (True, False, 5, 20), (True, True, 1, 220), (True, True, 0.5, 170)],
)
def test_the_score_of_the_arena(compiled, correct, speedup, score):
    assert arena_score(compiled, correct, speedup) == score


def test_pass_at_k_is_the_product_of_geak():
    n, correct, k = 10, 3, 5
    product = math.prod(1 - k / i for i in range(n - correct + 1, n + 1))
    assert pass_at_k(n, correct, k) == pytest.approx(1 - product)
