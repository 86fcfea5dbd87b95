"""Timing on a real GPU: every train and unseen workload against the baseline, in pairs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import torch

from kernel_gym.devices.base import (
    Device,
    Exclusivity,
    Failed,
    FailureKind,
    Session,
    SketchedCall,
    TimedSession,
)
from kernel_gym.judge.attempt import Attempt, Verdict, verdict_of
from kernel_gym.judge.protocol import PLAUSIBILITY, TIMING
from kernel_gym.judge.timing.baselines import BaselineRunner
from kernel_gym.judge.timing.comparison import WorkloadComparison, compare_sessions, measure_split
from kernel_gym.judge.timing.fresh_inputs import FreshInputs
from kernel_gym.judge.timing.noise_floor import noise_floor
from kernel_gym.judge.timing.paired import Ended, PairedResult
from kernel_gym.judge.timing.reported import impossible
from kernel_gym.judge.timing.warmup import warm_up
from kernel_gym.records import Outcome
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.sampling import (
    adversarial_workloads,
    make_inputs,
    train_workloads,
    unseen_workloads,
)
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Split, Workload

ALONE_CALLS = 8
"""Calls of which the median is the time of a source by itself."""


class PairedMethod:
    """Times calls of baseline and candidate in turn."""

    def build(self, attempt: Attempt) -> Verdict | None:
        """Loads the candidate and makes its plan for every workload.

        Other evaluations use the GPU meanwhile. Whatever else is slow at its first use is done here
        too, because nothing may build or load while the evaluation has the GPU alone.
        """
        session, calls = _timed(attempt.session), _sketched_calls(attempt)
        failed = session.load(attempt.task.problem.assembled(attempt.source))
        failed = failed or session.compile(calls) or _recorded_again(attempt, session)
        if failed is None:
            attempt.baseline.session(attempt.task, calls)
            warm_up(attempt)
        return verdict_of(failed) if failed else None

    def time(self, attempt: Attempt) -> Verdict | None:
        """Times all train and unseen workloads. Bounds include the noise floor (rules 18-20).

        Outputs of timed calls are left in `attempt.deferred`, unless there is a verdict already.
        """
        attempt.device.free_unused_memory()  # a PyTorch baseline may need as much as the oracle
        noise = noise_floor(attempt.device, compare_sessions)
        for split in (Split.TRAIN, Split.UNSEEN):
            verdict = _time_split(attempt, split, noise)
            if verdict is not None:  # wrong values explain more than an impossible time
                wrong = attempt.check_deferred()
                return Verdict(Outcome.WRONG_VALUES, wrong) if wrong else verdict
        return None

    def time_baseline(
        self,
        device: Device,
        baseline: BaselineRunner,
        task: Task,
        workloads: Sequence[Workload],
        seed: int,
    ) -> list[float] | Failed:
        """Measures the baseline by itself, alone on the GPU."""
        session = _timed(baseline.session(task))
        times = []
        try:
            for workload in workloads:
                with device.held(Exclusivity.ALONE):
                    seconds = seconds_alone(task, workload, session, seed, device)
                if isinstance(seconds, Failed):
                    return seconds
                times.append(seconds)
        finally:
            baseline.close()
        return times


def _timed(session: Session | None) -> TimedSession:
    """Returns a session as one that can be timed in blocks."""
    timed = session.timed if session is not None else None
    assert timed is not None, "a device with paired timing must offer timed sessions"
    return timed


def _baseline_session(attempt: Attempt) -> TimedSession:
    return _timed(attempt.baseline.session(attempt.task))


def _sketched_calls(attempt: Attempt) -> list[SketchedCall]:
    """Returns a call of each workload, as far as its inputs can be described without values."""
    task, scale = attempt.task, attempt.device.description.scale
    workloads = [
        *train_workloads(task.problem, scale),
        *adversarial_workloads(
            task.problem, scale, task.language, attempt.data_seed("adversarial")
        ),
        *unseen_workloads(task.problem, scale, task.language, attempt.data_seed("unseen")),
    ]
    calls = []
    for workload in workloads:
        inputs = _shapes_only(attempt, workload)
        if inputs is not None:
            calls.append((workload.dims, inputs))
    return calls


def _recorded_again(attempt: Attempt, session: TimedSession) -> Failed | None:
    """Records one train workload again and again, which the candidate cannot foresee (rule 9).

    It is done here because host code that is slow may not keep the GPU from others.
    """
    workloads = train_workloads(attempt.task.problem, attempt.device.description.scale)
    workload = workloads[attempt.data_seed("called twice") % len(workloads)]
    inputs = _shapes_only(attempt, workload)
    if inputs is None:
        inputs = make_inputs(attempt.task.problem, workload, 0, torch.device("cpu"))
        if failed := session.compile([(workload.dims, inputs)]):
            return failed
    session.sample_from(attempt.sample_seed(workload))
    return session.repeat(inputs, workload.dims)


def _shapes_only(attempt: Attempt, workload: Workload) -> Mapping[str, Value] | None:
    """Returns inputs without values, or None if drawing the inputs depends on drawn values."""
    try:
        return make_inputs(attempt.task.problem, workload, 0, torch.device("meta"))
    except RuntimeError:  # PyTorch refuses; the kernel compiles at its first call then
        return None


def _time_split(attempt: Attempt, split: Split, noise: float) -> Verdict | None:
    """Times the workloads of a split, and adds the times to their results.

    Args:
        attempt: The evaluation.
        split: The split.
        noise: The noise floor, by which the bounds are wider.
    """
    timed = {n: w for n, w in enumerate(attempt.workloads) if w.timed and w.split is split}
    comparisons = {n: _comparison(attempt, w, "time") for n, w in timed.items()}
    ended = measure_split(list(comparisons.values()))
    if ended is not None:
        return _verdict(ended)
    for index, comparison in comparisons.items():
        result = _plausible(attempt, timed[index], comparison.result)
        if not isinstance(result, PairedResult):
            return result
        _add_times(attempt, index, result, noise)
    return None


def _plausible(
    attempt: Attempt, workload: Workload, result: PairedResult
) -> PairedResult | Verdict:
    """Returns a result that physics allows, and whose baseline the candidate has not slowed much.

    A result that is not plausible is measured once again.
    """
    roofline = attempt.roofline_seconds(workload)
    limit = PLAUSIBILITY.physics_share * roofline
    if result.candidate_seconds < limit:
        again = _measured_again(attempt, workload)
        if isinstance(again, Verdict):
            return again
        if again.candidate_seconds < limit:
            return impossible(again.candidate_seconds, roofline, workload)
        result = again
    if not result.slowed:
        return result
    for session in (_baseline_session(attempt), _timed(attempt.session)):
        session.renew()  # the launchers differ, or the candidate has changed one of them
    again = _measured_again(attempt, workload)
    if isinstance(again, PairedResult) and again.slowed > TIMING.max_beside_share:
        text = f"the baseline is {again.slowed:.0%} slower where the candidate has run"
        return Verdict(Outcome.INVALID_TIMING, f"{text} on {workload}")
    return again


def _add_times(attempt: Attempt, index: int, result: PairedResult, noise: float) -> None:
    """Adds the times of a workload to its result."""
    mean, half = result.interval.mean, result.interval.half
    if mean > math.log(PLAUSIBILITY.audit_speedup):
        attempt.label("audit: more than 10 times the baseline")
    attempt.amend(
        index,
        candidate_seconds=result.candidate_seconds,
        baseline_seconds=result.baseline_seconds,
        roofline_seconds=attempt.roofline_seconds(attempt.workloads[index]),
        speedup=math.exp(mean),
        speedup_low=math.exp(mean - half - noise),
        speedup_high=math.exp(mean + half + noise),
    )


def _measured_again(attempt: Attempt, workload: Workload) -> PairedResult | Verdict:
    comparison = _comparison(attempt, workload, "time again")
    ended = measure_split([comparison])
    return comparison.result if ended is None else _verdict(ended)


def _comparison(attempt: Attempt, workload: Workload, purpose: str) -> WorkloadComparison:
    return WorkloadComparison(
        attempt.task,
        workload,
        _baseline_session(attempt),
        _timed(attempt.session),
        attempt.data_seed(purpose, workload.key),
        attempt.device,
        attempt.deferred,
    )


def _verdict(ended: Ended) -> Verdict:
    return verdict_of(ended) if isinstance(ended, Failed) else ended


def seconds_alone(
    task: Task, workload: Workload, session: TimedSession, seed: int, device: Device
) -> float | Failed:
    """Returns the time of one call with cold caches, for head-room and never for pay.

    Args:
        task: What the session solves.
        workload: The workload.
        session: The session that is timed.
        seed: The seed of the data.
        device: The GPU, which nobody else may use meanwhile.

    Returns:
        Seconds, or why the source failed.

    Raises:
        InfraError: A call does not fit.
    """
    inputs = FreshInputs(task, workload, seed, session.memory, device.description.torch_device)
    failed = session.select(inputs.draw(), workload.dims)
    if isinstance(failed, Failed):
        return failed
    times: list[float] = []
    graph = True
    for index in range(1 + ALONE_CALLS):
        call = inputs.place(inputs.draw())
        seconds = session.time_calls([session], call, graph)
        if seconds is None:
            graph = False
            seconds = session.time_calls([session], call, graph=False)
        if seconds is None:
            return Failed(FailureKind.RUNTIME, "its calls cannot be timed")
        if isinstance(seconds, Failed):
            return seconds
        times += seconds if index else []
    return statistics.median(times)
