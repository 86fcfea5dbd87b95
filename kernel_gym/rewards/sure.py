"""Terms for the speed that remains if a modelled time is as wrong as its interval allows."""

from __future__ import annotations

import math

from kernel_gym.records import Clock, Evaluation, WorkloadResult
from kernel_gym.rewards.terms import FASTEST, SLOWEST, log_speed, term
from kernel_gym.tasks.workload import Split


@term
def sure_carried_speed(evaluation: Evaluation, below: float = 1.0) -> float:
    """Returns the lesser of the sure train speed and the sure unseen speed, from -1 to 1."""
    return min(
        _sure_speed(evaluation, Split.TRAIN, below), _sure_speed(evaluation, Split.UNSEEN, below)
    )


@term
def sure_unseen_speed(evaluation: Evaluation, below: float = 1.0) -> float:
    """Returns the log of the sure speedup on unseen workloads, from -1 to 1."""
    return _sure_speed(evaluation, Split.UNSEEN, below)


@term
def calibrated_share(evaluation: Evaluation) -> float:
    """Returns the share of timed workloads whose speedup has an interval or was measured."""
    timed = [w for w in evaluation.workloads if w.timed and w.speedup_low is not None]
    known = [w for w in timed if _factor(w, evaluation.clock) is not None]
    return len(known) / len(timed) if timed else 0.0


def sure_speedup(result: WorkloadResult, clock: Clock) -> float | None:
    """Returns the speedup that a workload has even if its modelled times miss by their interval.

    A measured speedup is its lower bound. A modelled one above 1 is divided by its factor and stays
    at 1 at least, because its interval contains the speed of the baseline. Without a factor it
    counts as 1. A modelled speedup below 1 is kept.

    Args:
        result: A timed workload.
        clock: Where its times come from.

    Returns:
        The speedup, or None if the workload has none.
    """
    low = result.speedup_low
    if low is None or math.isnan(low):
        return None
    if low <= 1.0:
        return low
    factor = _factor(result, clock)
    return 1.0 if factor is None else max(low / factor, 1.0)


def _factor(result: WorkloadResult, clock: Clock) -> float | None:
    """Returns the factor by which a speedup may be wrong: 1 if measured, None if not known."""
    if clock is Clock.MEASURED:
        return 1.0
    known = result.speedup_factor
    return known if known is not None and known >= 1.0 else None


def _sure_speed(evaluation: Evaluation, split: Split, below: float) -> float:
    """Returns the log of a split's sure speedup, the geometric mean over its timed workloads."""
    speedups = [sure_speedup(w, evaluation.clock) for w in evaluation.by_split(split) if w.timed]
    known = sorted(min(max(s, SLOWEST), FASTEST) for s in speedups if s is not None)
    if not known or len(known) < len(speedups):
        return -below
    position = log_speed(math.exp(math.fsum(map(math.log, known)) / len(known)))
    return position if position >= 0.0 else position * below
