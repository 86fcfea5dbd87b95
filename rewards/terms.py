"""The terms of a reward: pure functions from an evaluation to a finite number.

Speeds enter as the lower bound of their interval and on a log scale, so that 2x and 0.5x are as far
from the baseline as each other, and a doubling is worth the same wherever it happens.
"""

from __future__ import annotations

import math

from kernel_gym.records import Evaluation, Outcome, Stage
from kernel_gym.tasks.workload import Split

SLOWEST, FASTEST = 0.1, 10.0
"""Speedups are clamped to this range (rule 24 of the evaluation protocol)."""
DEAD_BAND = 1.02
"""A speedup within this factor of 1 counts as none: a GPU's clock can hardly tell it apart."""

HACK = -1.0
ALL_TRAIN_RIGHT = 0.10
UNTIMED = 0.15
CORRECT = 0.20
CREDIT = {
    Outcome.HACK: HACK,
    Outcome.SCREENED: 0.0,
    Outcome.COMPILE_ERROR: 0.02,
    Outcome.RUNTIME_ERROR: 0.05,
    Outcome.TIMEOUT: 0.05,
    Outcome.WRONG_METADATA: 0.05,
    Outcome.WRONG_VALUES: 0.05,
    Outcome.UNSEEN_FAILED: ALL_TRAIN_RIGHT,
    Outcome.INVALID_TIMING: UNTIMED,
    Outcome.PASSED: CORRECT,
}
"""What an outcome is worth before speed counts. See :func:`credit`."""


def correct(evaluation: Evaluation) -> float:
    """The gate: 1 when every workload of every split was right and timed, else 0."""
    return float(evaluation.outcome is Outcome.PASSED)


def credit(evaluation: Evaluation) -> float:
    """Partial credit: how far the submission came.

    The rungs are small and far below what a correct kernel earns, so that no policy settles on one;
    they only give a policy that never gets a kernel right something to climb:

    - a hack costs more than anything honest can lose;
    - a screened source never reached a compiler: nothing;
    - a source that does not compile at least kept the rules;
    - one that runs wrongly compiled;
    - one that is right on every train workload but not on adversarial or unseen ones is a kernel
      for the shapes it was shown;
    - one that is right everywhere but whose timing could not be trusted lacks only a time.

    Args:
        evaluation: Any evaluation but one whose outcome is `infra`.

    Returns:
        The credit, between -1 and 0.2.
    """
    rung = CREDIT[evaluation.outcome]
    beyond_train = evaluation.stage in (Stage.ADVERSARIAL, Stage.UNSEEN)
    if beyond_train and 0.0 < rung < ALL_TRAIN_RIGHT:
        return ALL_TRAIN_RIGHT
    return rung


def speed(evaluation: Evaluation) -> float:
    """Log speedup on the train workloads, from -1 (10x slower) to 1 (10x faster)."""
    return log_speed(evaluation.speedup_low)


def unseen_speed(evaluation: Evaluation) -> float:
    """Log speedup on the unseen workloads, from -1 to 1."""
    return log_speed(evaluation.unseen_speedup_low)


def unseen_share(evaluation: Evaluation) -> float:
    """Share of the unseen workloads that came out right; 0 when none was tried."""
    results = evaluation.by_split(Split.UNSEEN)
    return sum(result.passed for result in results) / len(results) if results else 0.0


def retention(evaluation: Evaluation) -> float:
    """How much of the train speed is left on unseen workloads: 1 for all of it, 0 for none.

    It is one minus the gap between the two log speeds. With a ratio of speedups a candidate could
    gain by being slower where it is shown; with the gap, being faster anywhere never costs.
    """
    gap = speed(evaluation) - unseen_speed(evaluation)
    return 1.0 - min(max(gap, 0.0), 1.0)


def transfer(evaluation: Evaluation) -> float:
    """Half for being right on unseen workloads, half for being as fast there; 0 to 1."""
    return 0.5 * unseen_share(evaluation) + 0.5 * retention(evaluation)


def log_speed(speedup: float | None) -> float:
    """A speedup on a log scale from -1 to 1, with a dead band around 1.

    Outside the band the value starts at 0 and grows continuously: there is no step to aim for. An
    absent or meaningless speedup counts as the slowest.

    Args:
        speedup: Baseline time over candidate time.

    Returns:
        A number between -1 and 1.
    """
    if speedup is None or math.isnan(speedup):
        return -1.0
    position = math.log(min(max(speedup, SLOWEST), FASTEST))
    band, span = math.log(DEAD_BAND), math.log(FASTEST)
    beyond = max(abs(position) - band, 0.0) / (span - band)
    return math.copysign(min(beyond, 1.0), position) if beyond else 0.0
