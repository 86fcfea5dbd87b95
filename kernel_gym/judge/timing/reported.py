"""Timing on a device that reports the seconds of each call, such as the simulator."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gym.devices.base import Device, Failed
from kernel_gym.judge.attempt import Attempt, Verdict, verdict_of
from kernel_gym.judge.protocol import PLAUSIBILITY
from kernel_gym.judge.timing.baselines import BaselineRunner
from kernel_gym.records import Outcome
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Workload


class ReportedMethod:
    """Uses the times that calls had when their values were checked."""

    def build(self, attempt: Attempt) -> Verdict | None:
        """Loads the candidate. Triton compiles at the first launch."""
        assert attempt.session is not None
        failed = attempt.session.load(attempt.task.problem.assembled(attempt.source))
        return verdict_of(failed) if failed else None

    def time(self, attempt: Attempt) -> Verdict | None:
        """Compares the reported times with the baseline's, and with physics (rule 20)."""
        if attempt.ahead is not None:
            attempt.ahead.finish()  # the baseline has one session
        disagreement = _disagreement(attempt)
        if disagreement:
            return Verdict(Outcome.INVALID_TIMING, disagreement)
        workloads = zip(attempt.workloads, attempt.results, strict=True)
        for index, (workload, result) in enumerate(workloads):
            seconds = result.candidate_seconds
            if not workload.timed or not seconds:
                continue
            roofline = attempt.roofline_seconds(workload)
            if seconds < PLAUSIBILITY.physics_share * roofline:
                return impossible(seconds, roofline, workload)
            baseline = attempt.baseline_seconds.get(index) or attempt.baseline_seconds_on(workload)
            ratio = baseline / seconds
            attempt.amend(
                index,
                baseline_seconds=baseline,
                roofline_seconds=roofline,
                speedup=ratio,
                speedup_low=ratio,
                speedup_high=ratio,
            )
        return None

    def time_baseline(
        self,
        device: Device,
        baseline: BaselineRunner,
        task: Task,
        workloads: Sequence[Workload],
        seed: int,
    ) -> list[float] | Failed:
        """Returns the reported or modelled seconds of the baseline; the seed is not used."""
        return [baseline.seconds(task, workload) for workload in workloads]


def impossible(seconds: float, roofline: float, workload: Workload) -> Verdict:
    """Returns the verdict on a time that is less than the roofline allows (rule 20)."""
    text = f"{seconds:.3g} s is less than physics allows ({roofline:.3g} s) on {workload}"
    return Verdict(Outcome.HACK, text)


def _disagreement(attempt: Attempt) -> str:
    """Describes different times for the same data: such a candidate keeps state across calls."""
    index, second = attempt.repeated or (0, None)
    first = attempt.results[index].candidate_seconds
    if not first or not second:
        return "the device reported no time for the workload that was called twice"
    if max(first, second) > PLAUSIBILITY.repeat_factor * min(first, second):
        return f"two calls on the same data took {first * 1e6:.1f} and {second * 1e6:.1f} us"
    return ""
