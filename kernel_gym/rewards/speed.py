"""Terms for speed. A kernel that did not pass gets 0 or the lowest speed."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kernel_gym.records import Evaluation, Outcome, WorkloadResult
from kernel_gym.rewards.reward import NOTHING_KNOWN, Context
from kernel_gym.rewards.terms import MAX_MAGNITUDE, log_speed, term
from kernel_gym.tasks.workload import Split


@term
def speed(evaluation: Evaluation) -> float:
    """Returns the log speedup on train workloads, from -1 to 1, by the lower bound."""
    return log_speed(evaluation.speedup_low)


@term
def unseen_speed(evaluation: Evaluation, below: float = 1.0) -> float:
    """Returns the log speedup on unseen workloads, from -1 to 1, times `below` if negative."""
    return _scaled(log_speed(evaluation.unseen_speedup_low), below)


@term
def carried_speed(evaluation: Evaluation, below: float = 1.0) -> float:
    """Returns the lesser of the train speed and the unseen speed.

    Train speed counts only as far as unseen workloads have it too. More train speed never costs
    anything.
    """
    return _scaled(min(speed(evaluation), unseen_speed(evaluation)), below)


@term
def paid_speed(evaluation: Evaluation, slack: float = 1.0, below: float = 1.0) -> float:
    """Returns the lesser of the train speedup and `slack` times the unseen one, from -1 to 1.

    A speedup s of 1 or more earns `1 - 1 / sqrt(s)`, which has no upper limit where it ends, so the
    speedups of single workloads are not clamped. A smaller one earns the log speed, times `below`.
    Within the slack the draw of the unseen workloads does not change the reward.
    """
    if evaluation.outcome is not Outcome.PASSED:
        return 0.0
    train, unseen = (_unclamped(evaluation, split) for split in (Split.TRAIN, Split.UNSEEN))
    if train is None or unseen is None:
        return -below
    ratio = min(train, unseen * slack)
    return log_speed(ratio) * below if ratio < 1.0 else 1.0 - ratio**-0.5


def _unclamped(evaluation: Evaluation, split: Split) -> float | None:
    """Returns the geometric mean of the lower bounds of a split's timed workloads, or None."""
    lows = [w.speedup_low for w in evaluation.by_split(split) if w.timed]
    known = sorted(low for low in lows if low is not None and 0.0 < low < math.inf)
    if not known or len(known) < len(lows):
        return None
    return math.exp(sum(map(math.log, known)) / len(known))


@term
def retention(evaluation: Evaluation) -> float:
    """Returns how much of the train speed remains on unseen workloads: 1 for all, 0 for none.

    It is one minus the gap between the two log speeds. There is no gap if the unseen workloads are
    faster.
    """
    gap = speed(evaluation) - unseen_speed(evaluation)
    return 1.0 - min(max(gap, 0.0), 1.0)


@term
def speedup(
    evaluation: Evaluation,
    mean: str = "geometric",
    cap: float = MAX_MAGNITUDE,
    least: float = 0.0,
) -> float:
    """Returns the speedup on the train workloads; 0 for a kernel that did not pass.

    Args:
        evaluation: The evaluation to score.
        mean: `geometric` or `arithmetic` mean over the workloads' ratios, or `total`, the sum of
            all baseline times over the sum of all candidate times.
        cap: The largest value.
        least: A smaller speedup counts as 0.

    Returns:
        The speedup, or 0 if a workload has no usable speedup.
    """
    if evaluation.outcome is not Outcome.PASSED:
        return 0.0
    ratio = min(_mean(evaluation, mean), cap)
    return ratio if ratio >= least else 0.0


@term
def faster(evaluation: Evaluation, than: float = 1.0) -> float:
    """Returns 1 if the geometric-mean speedup of a kernel that passed is above `than`, else 0."""
    return float(speedup(evaluation) > than)


@term
def speed_of_light(evaluation: Evaluation) -> float:
    """Returns `1 / (1 + (T - T_sol) / (T_base - T_sol))`, averaged over train workloads.

    It is 0.5 at the baseline's time and 1 at the roofline. If the baseline is at the roofline, a
    candidate at the roofline gets 1 and any other gets 0.
    """
    if evaluation.outcome is not Outcome.PASSED:
        return 0.0
    scores = [_speed_of_light(result) for result in evaluation.by_split(Split.TRAIN)]
    known = sorted(score for score in scores if score is not None)
    return sum(known) / len(known) if known else 0.0


@term
def improvement(evaluation: Evaluation, context: Context = NOTHING_KNOWN) -> float:
    """Returns the gain in log speed over the best of the episode so far, at least 0.

    The first correct submission is compared with the baseline.
    """
    if evaluation.outcome is not Outcome.PASSED:
        return 0.0
    before = 1.0 if context.best_speedup is None else context.best_speedup
    return max(log_speed(evaluation.speedup_low) - log_speed(before), 0.0)


def _scaled(position: float, below: float) -> float:
    return position if position >= 0 else position * below


def _mean(evaluation: Evaluation, mean: str) -> float:
    results = evaluation.by_split(Split.TRAIN)
    if mean == "geometric":
        return _usable(evaluation.speedup)
    if mean == "total":
        spent = _total(result.candidate_seconds for result in results)
        return _usable(_total(result.baseline_seconds for result in results) / spent)
    if mean != "arithmetic":
        raise ValueError(f"unknown mean {mean!r}; known: geometric, arithmetic, total")
    ratios = sorted(_usable(result.speedup) for result in results)
    if not ratios:
        return _usable(evaluation.speedup)
    return sum(ratios) / len(ratios) if ratios[0] > 0 else 0.0


def _total(seconds: Iterable[float | None]) -> float:
    """Returns the sum in sorted order; infinity if a time is missing, so that ratios are 0."""
    known = [math.inf if s is None else s for s in seconds]
    return math.fsum(sorted(known)) if known else math.inf


def _usable(ratio: float | None) -> float:
    if ratio is None or math.isnan(ratio) or ratio < 0:
        return 0.0
    return min(ratio, MAX_MAGNITUDE)


def _speed_of_light(result: WorkloadResult) -> float | None:
    times = (result.candidate_seconds, result.baseline_seconds, result.roofline_seconds)
    if any(time is None or not math.isfinite(time) for time in times):
        return None
    time, base, light = (float(t or 0.0) for t in times)
    beyond, room = max(time - light, 0.0), max(base - light, 0.0)
    return room / (room + beyond) if room + beyond > 0 else 1.0
