"""Chooses the workload whose kernels a record describes: the one with the most room to improve."""

from __future__ import annotations

from kernel_gym.judge.attempt import Attempt
from kernel_gym.judge.protocol import RATIO_CLAMP
from kernel_gym.records import KernelFacts


def profiled_kernels(attempt: Attempt) -> tuple[KernelFacts, ...]:
    """Returns the facts of a candidate's kernels on one train workload.

    If no train workload was completed, or the device does not record launches, these are the facts
    of the compiled kernels.
    """
    if not attempt.launched:
        return attempt.facts
    place = max(attempt.launched, key=lambda i: _room(attempt, i))
    return tuple(k.model_copy(update={"workload": place}) for k in attempt.launched[place])


def _room(attempt: Attempt, place: int) -> tuple[float, float]:
    """Returns by what factor the paid speedup of a workload could rise, and the time could fall.

    The least time is the roofline and the shortest kernel. The paid speedup is clamped to
    `RATIO_CLAMP`. If a later check failed, the baseline was not timed, and nothing is clamped.
    """
    workload, result = attempt.workloads[place], attempt.results[place]
    least = attempt.device.description.spec.shortest_kernel_seconds
    least += attempt.roofline_seconds(workload)
    factor = (result.candidate_seconds or least) / least
    if result.baseline_seconds is None or not result.speedup:
        return factor, factor
    return _paid(result.baseline_seconds / least) / _paid(result.speedup), factor


def _paid(speedup: float) -> float:
    low, high = RATIO_CLAMP
    return min(max(speedup, low), high)
