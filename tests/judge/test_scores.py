"""From workload results to one number (rules 24 and 25)."""

import math

import pytest

from kernel_gym.judge.scores import geometric_speedup
from kernel_gym.records import WorkloadResult
from kernel_gym.tasks.workload import Kind, Split


def _result(speedup, split=Split.TRAIN):
    return WorkloadResult(
        dims={"n": 1},
        split=split,
        kind=Kind.TRAIN,
        distribution="normal",
        passed=True,
        speedup=speedup,
    )


def test_the_mean_is_geometric():
    assert geometric_speedup([_result(4.0), _result(1.0)], Split.TRAIN) == pytest.approx(2.0)


def test_each_ratio_is_clamped_first():
    results = [_result(1e6), _result(1e-6)]
    assert geometric_speedup(results, Split.TRAIN) == pytest.approx(1.0)
    assert geometric_speedup([_result(1e6)], Split.TRAIN) == pytest.approx(10.0)


def test_one_workload_without_a_time_leaves_no_mean():
    assert geometric_speedup([_result(2.0), _result(None)], Split.TRAIN) is None


def test_splits_are_kept_apart():
    results = [_result(2.0), _result(8.0, Split.UNSEEN)]
    assert geometric_speedup(results, Split.UNSEEN) == pytest.approx(8.0)
    assert geometric_speedup(results, Split.ADVERSARIAL) is None
    assert not math.isclose(geometric_speedup(results, Split.TRAIN), 8.0)
