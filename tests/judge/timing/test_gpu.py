"""Timing on a GPU: a baseline that is slow beside the candidate is timed again before it counts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kernel_gym.judge.protocol import TIMING
from kernel_gym.judge.timing import gpu
from kernel_gym.judge.timing.paired import PairedResult
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task, train_workloads
from kernel_gym.tasks.problem import Scale
from kernel_gym.tasks.workload import Split

TASK = get_task("triton2triton/softmax")
WORKLOAD = train_workloads(TASK.problem, Scale.FULL)[0]
SECONDS = 1e-5


class Side:
    """A session that counts its launchers."""

    launchers = 1

    @property
    def timed(self):
        return self

    def renew(self):
        self.launchers += 1


class Attempt:
    """An evaluation with two sides, of which only the bounds of its result are kept."""

    def __init__(self):
        self.task, self.device, self.deferred = TASK, None, None
        self.session, self.alone = Side(), Side()
        self.baseline = SimpleNamespace(session=lambda task: self.alone)
        self.fields, self.workloads = {}, [WORKLOAD]

    def roofline_seconds(self, workload):
        return SECONDS / 10

    def data_seed(self, *purpose):
        return 0

    def amend(self, index, **fields):
        self.fields = fields


class Compared:
    """A comparison in which the baseline takes so long beside the candidate."""

    def __init__(self, baseline):
        pairs = TIMING.min_pairs
        self.result = PairedResult([baseline] * pairs, [SECONDS] * pairs, [(baseline, SECONDS)] * 3)

    def measure(self, pairs):
        assert pairs == TIMING.min_pairs


def timed(monkeypatch, *baselines):
    """Times a workload whose baseline takes these seconds, one after the other."""
    comparisons = map(Compared, baselines)
    monkeypatch.setattr(gpu, "WorkloadComparison", lambda *_: next(comparisons))
    attempt = Attempt()
    return gpu._time_split(attempt, Split.TRAIN, 0.0), attempt


def test_a_baseline_that_is_slow_in_one_launcher_only_is_timed_in_another(monkeypatch):
    verdict, attempt = timed(monkeypatch, 1.2 * SECONDS, SECONDS)
    assert verdict is None
    assert attempt.session.launchers == attempt.alone.launchers == 2
    assert attempt.fields["speedup"] == pytest.approx(1.0)


def test_a_baseline_that_stays_slow_beside_the_candidate_voids_the_times(monkeypatch):
    verdict, attempt = timed(monkeypatch, 1.2 * SECONDS, 1.2 * SECONDS)
    assert verdict.outcome is Outcome.INVALID_TIMING
    assert "20% slower where the candidate has run" in verdict.message
    assert not attempt.fields


def test_a_small_difference_of_both_launchers_lowers_the_speedup(monkeypatch):
    verdict, attempt = timed(monkeypatch, 1.08 * SECONDS, 1.08 * SECONDS)
    assert verdict is None
    assert attempt.session.launchers == attempt.alone.launchers == 2
    assert attempt.fields["speedup"] == pytest.approx(1.0)
    assert attempt.fields["speedup_high"] == pytest.approx(1.0)


def test_a_comparison_without_doubt_keeps_its_launchers(monkeypatch):
    verdict, attempt = timed(monkeypatch, SECONDS)
    assert verdict is None
    assert attempt.session.launchers == attempt.alone.launchers == 1
