"""Timing on a real GPU: every train and unseen workload against the baseline, in pairs."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kernel_gym.devices.base import Failed, InfraError, SketchedCall
from kernel_gym.devices.gpu.placement import Placed
from kernel_gym.devices.gpu.runtime import give_back
from kernel_gym.devices.gpu.session import GpuSession
from kernel_gym.judge.attempt import Attempt, Verdict, verdict_of
from kernel_gym.judge.protocol import (
    AUDIT_ABOVE,
    GRAPH_BELOW,
    PATIENCE,
    PHYSICS_MARGIN,
    PILOT_CALLS,
    PILOT_LEAD,
    TRIES,
    WALL_SHARE,
)
from kernel_gym.judge.timing.deferred_checks import Kept
from kernel_gym.judge.timing.host_load import wait_for_processors
from kernel_gym.judge.timing.input_pool import Ring
from kernel_gym.judge.timing.noise_floor import noise_floor
from kernel_gym.judge.timing.paired import Comparison, Pairs
from kernel_gym.judge.timing.warmup import use_once
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


def build_ahead(attempt: Attempt) -> Verdict | None:
    """Loads the candidate and compiles its kernels for every workload, while others use the GPU.

    What does not compile does not get a GPU context.
    """
    session, calls = attempt.session, _sketched_calls(attempt)
    assert isinstance(session, GpuSession)
    failed = session.rehearse(attempt.source, calls) or session.load(attempt.source)
    failed = failed or session.compile(calls)
    if failed is None:  # nothing must build or load while the evaluation has the GPU for itself
        attempt.baseline.session(attempt.task, calls)
        use_once(attempt)
    return verdict_of(failed) if failed else None


def _sketched_calls(attempt: Attempt) -> list[SketchedCall]:
    """A call of each workload, as far as its inputs can be had without values."""
    task, device = attempt.task, attempt.device
    workloads = [
        *train_workloads(task.problem, device.scale),
        *adversarial_workloads(task.problem, device.scale, task.language),
        *unseen_workloads(task.problem, device.scale, task.language, attempt.data_seed("unseen")),
    ]
    calls = []
    for workload in workloads:
        inputs = _shapes_only(attempt, workload)
        if inputs is not None:
            calls.append((workload.dims, inputs))
    return calls


def _shapes_only(attempt: Attempt, workload: Workload) -> Mapping[str, Value] | None:
    """Inputs without values; None for a problem whose drawing looks at what it has drawn."""
    try:
        return make_inputs(attempt.task.problem, workload, 0, torch.device("meta"))
    except RuntimeError:  # PyTorch's word for it; the kernel compiles at its first call then
        return None


def time_measured(attempt: Attempt) -> Verdict | None:
    """Times all train and unseen workloads; bounds hold the noise of this GPU (rules 18-20).

    Outputs of timed calls are left in `attempt.kept`, unless there is a verdict without them.
    """
    give_back()  # a baseline of PyTorch's may need as much as the oracle did
    verdict = _time_all(attempt)
    _baseline_session(attempt).rest()
    if verdict is None:
        return None
    wrong = attempt.kept.check()  # says more than that a time is impossible
    return Verdict(Outcome.WRONG_VALUES, wrong) if wrong else verdict


def _time_all(attempt: Attempt) -> Verdict | None:
    """Every workload, and all again when more time has passed than stamps account for."""
    noise = noise_floor(attempt.device, compare_sessions)
    share = 0.0
    for number in range(TRIES):
        purpose = f"time {number}"
        if number:
            _prepare_another_try(attempt)
        hidden = []
        for index, workload in enumerate(attempt.workloads):
            if workload.split is Split.ADVERSARIAL:
                continue
            longer = PATIENCE if number else 1
            found = _time_workload(attempt, index, workload, noise, purpose, longer)
            if isinstance(found, Verdict):
                return found
            hidden.append(found.hidden)
        share = statistics.median(hidden) if hidden else 0.0
        if share <= WALL_SHARE:
            return None
    text = f"{share:.0%} more time passed in timed calls than their stamps account for"
    return Verdict(Outcome.INVALID_TIMING, text)


def _time_workload(
    attempt: Attempt, index: int, workload: Workload, noise: float, purpose: str, longer: int
) -> Pairs | Verdict:
    problem, spec = attempt.task.problem, attempt.device.spec
    dims = workload.dims
    roofline = spec.roofline_seconds(
        problem.bytes(dims), problem.flops(dims), problem.outputs[0].dtype
    )
    found = _compare(attempt, workload, purpose, longer)
    if isinstance(found, Pairs) and found.candidate_seconds < PHYSICS_MARGIN * roofline:
        found = _compare(attempt, workload, f"{purpose} again", longer)
        if isinstance(found, Pairs) and found.candidate_seconds < PHYSICS_MARGIN * roofline:
            seconds = found.candidate_seconds
            text = f"{seconds:.3g} s is less than physics allows ({roofline:.3g} s) on {workload}"
            return Verdict(Outcome.HACK, text)
    if isinstance(found, Verdict):
        return found
    if not found.agrees:
        text = (
            f"in a block of timed calls {found.unaccounted * 1e6:.0f} us passed that its stamps "
            f"({found.claimed * 1e6:.0f} us) do not account for, beyond the baseline's"
        )
        return Verdict(Outcome.INVALID_TIMING, text)
    mean, half = found.interval.mean, found.interval.half
    if mean > math.log(AUDIT_ABOVE):
        attempt.label("audit: more than 10 times the baseline")
    attempt.amend(
        index,
        candidate_seconds=found.candidate_seconds,
        baseline_seconds=found.baseline_seconds,
        roofline_seconds=roofline,
        speedup=math.exp(mean),
        speedup_low=math.exp(mean - half - noise),
        speedup_high=math.exp(mean + half + noise),
    )
    return found


def _baseline_session(attempt: Attempt) -> GpuSession:
    session = attempt.baseline.session(attempt.task)
    assert isinstance(session, GpuSession)
    return session


def _session(attempt: Attempt) -> GpuSession:
    assert isinstance(attempt.session, GpuSession)
    return attempt.session


def _prepare_another_try(attempt: Attempt) -> None:
    """Before a candidate that was late is timed again, in longer blocks.

    What the host takes for a block differs by process and processor; a machine with more work than
    processors makes whole blocks late.
    """
    attempt.label("late: timed again")
    wait_for_processors()
    for session in (_baseline_session(attempt), _session(attempt)):
        session.move()


def _compare(attempt: Attempt, workload: Workload, purpose: str, longer: int) -> Pairs | Verdict:
    """One workload, again while the clocks disagree: an honest candidate's host may be slow."""
    found = _compare_once(attempt, workload, purpose, longer)
    for number in range(1, TRIES):
        if isinstance(found, Verdict) or not found.late:
            break
        _prepare_another_try(attempt)
        found = _compare_once(attempt, workload, f"{purpose}, try {number}", PATIENCE)
    return found


def _compare_once(
    attempt: Attempt, workload: Workload, purpose: str, longer: int
) -> Pairs | Verdict:
    seed = attempt.data_seed(purpose, workload.key)
    sessions = _baseline_session(attempt), _session(attempt)
    found = compare_sessions(
        attempt.task, workload, *sessions, seed, attempt.device, attempt.kept, longer
    )
    if isinstance(found, Failed):
        return verdict_of(found)
    return found


def compare_sessions(
    task: Task,
    workload: Workload,
    baseline: Any,
    candidate: Any,
    seed: int,
    device: Any,
    kept: Kept,
    longer: int = 1,
) -> Pairs | Verdict | Failed:
    """One workload on two workers.

    Args:
        task: what both solve.
        workload: its sizes.
        baseline: a session whose failures are ours.
        candidate: the other session.
        seed: of data and order.
        device: the GPU.
        kept: takes the outputs of timed calls that are to be checked.
        longer: blocks are so many times as long as usual.

    Raises:
        InfraError: the baseline fails, or two input sets do not fit.
    """
    ring = Ring(task, workload, seed, candidate.arena, device.where, times=longer)
    sides = (_Trusted(baseline), candidate)
    sessions = {sides[0]: baseline, candidate: candidate}
    with baseline.turns.taken(), candidate.turns.taken():
        for side in sides:
            failed = side.ring(ring.sets, workload.dims)
            if failed is not None:
                return failed
        return Comparison(
            *sides,
            ring=len(ring.sets),
            prepare=lambda side, calls: ring.prepare(
                sessions[side], calls, fresh=side is candidate
            ),
            verify=lambda calls: ring.verify(candidate, calls, kept),
            graphs=not ring.in_place,
            flush=2 * device.spec.flush_bytes / device.spec.memory_bandwidth,
            clock=time.perf_counter,
            rng=random.Random(seed),
            longer=longer,
        ).run()


def seconds_alone(
    task: Task, workload: Workload, session: Any, seed: int, device: Any
) -> float | Failed:
    """Median time of one cold call, of one worker by itself: good for head-room, never for pay.

    Short calls are replayed as graphs where they can be, as they are in comparisons.

    Args:
        task: what it solves.
        workload: its sizes.
        session: whose time is wanted.
        seed: of the data.
        device: the GPU, which nobody else uses meanwhile.

    Returns:
        Seconds, or why the worker failed.

    Raises:
        InfraError: two input sets do not fit.
    """
    ring = Ring(task, workload, seed, session.arena, device.where, PILOT_CALLS)
    calls = len(ring.sets)
    failed = session.ring(ring.sets, workload.dims)
    if failed is not None:
        return failed
    ring.prepare(session, calls, fresh=False)
    block = session.block(calls, PILOT_LEAD)
    if isinstance(block, Failed):
        return block
    seconds = statistics.median(block.stamps)
    if seconds < GRAPH_BELOW and not ring.in_place and session.capture() is None:
        block = session.replay(PILOT_CALLS)
        if isinstance(block, Failed):
            return block
        seconds = statistics.median(block.stamps) / calls
    return seconds


class _Trusted:
    """A baseline's session, whose failures are ours."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def ring(self, sets: Sequence[Placed], dims: Mapping[str, int]) -> None:
        """Hands over the argument sets."""
        self._ours(self._session.ring(sets, dims))

    def block(self, count: int, lead: int) -> Any:
        """Times calls."""
        return self._ours(self._session.block(count, lead))

    def capture(self) -> Any:
        """May fail: not every baseline can be captured."""
        return self._session.capture()

    def replay(self, count: int) -> Any:
        """Times replays."""
        return self._ours(self._session.replay(count))

    def _ours(self, answer: Any) -> Any:
        if isinstance(answer, Failed):
            raise InfraError(f"the baseline failed while it was timed: {answer.message}")
        return answer
