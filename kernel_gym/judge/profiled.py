"""Chooses the workload whose kernels a record describes: the one with most left to earn."""

from __future__ import annotations

from kernel_gym.judge.attempt import Attempt
from kernel_gym.judge.protocol import RATIO_CLAMP
from kernel_gym.records import KernelFacts


def profiled_kernels(attempt: Attempt) -> tuple[KernelFacts, ...]:
    """The facts of a candidate's kernels on one train workload.

    Where no train workload ran to its end, or the device knows no launches, they are what the
    session knows of the compiled kernels.
    """
    if not attempt.launched:
        return attempt.facts
    place = max(attempt.launched, key=lambda i: _left_to_earn(attempt, i))
    return tuple(k.model_copy(update={"workload": place}) for k in attempt.launched[place])


def _left_to_earn(attempt: Attempt, place: int) -> tuple[float, float]:
    """By what factor the paid speedup of a workload could rise, then the time itself.

    The least time is the roofline and one launch. The speedup is paid within `RATIO_CLAMP`; of a
    workload whose baseline was not timed, because a later check failed, no part is clamped.
    """
    workload, result = attempt.workloads[place], attempt.results[place]
    problem, spec = attempt.task.problem, attempt.device.spec
    dims, dtype = workload.dims, problem.outputs[0].dtype
    roofline = spec.roofline_seconds(problem.bytes(dims), problem.flops(dims), dtype)
    least = roofline + spec.launch_seconds
    factor = (result.candidate_seconds or least) / least
    if result.baseline_seconds is None or not result.speedup:
        return factor, factor
    return _paid(result.baseline_seconds / least) / _paid(result.speedup), factor


def _paid(speedup: float) -> float:
    low, high = RATIO_CLAMP
    return min(max(speedup, low), high)
