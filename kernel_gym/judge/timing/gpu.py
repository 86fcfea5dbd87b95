"""Timing on a real GPU: every train and unseen workload against the baseline, in pairs."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Mapping, Sequence

import torch

from kernel_gym.devices.base import (
    Device,
    Exclusivity,
    Failed,
    InfraError,
    Session,
    SketchedCall,
    TimedSession,
)
from kernel_gym.judge.attempt import Attempt, Verdict, verdict_of
from kernel_gym.judge.protocol import CLOCK, PLAUSIBILITY, TIMING
from kernel_gym.judge.timing.baselines import BaselineRunner
from kernel_gym.judge.timing.deferred_checks import DeferredChecks
from kernel_gym.judge.timing.host_load import wait_for_idle_cpus
from kernel_gym.judge.timing.input_pool import InputPool
from kernel_gym.judge.timing.noise_floor import noise_floor
from kernel_gym.judge.timing.paired import Ended, PairedBenchmark, PairedResult, PairedSetup
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


class PairedMethod:
    """Times blocks of calls of baseline and candidate in turn."""

    def build(self, attempt: Attempt) -> Verdict | None:
        """Loads the candidate and compiles its kernels for every workload.

        Other evaluations use the GPU meanwhile. A candidate that does not compile never gets a GPU
        context. Whatever else is slow at its first use is done here too, because nothing may build
        or load while the evaluation has the GPU alone.
        """
        if attempt.task.problem.recorded:
            return _build_recorded(attempt)
        session, calls = _timed(attempt.session), _sketched_calls(attempt)
        source = attempt.task.problem.assembled(attempt.source)
        failed = session.precompile(source, calls) or session.load(source)
        failed = failed or session.compile(calls)
        if failed is None:
            attempt.baseline.session(attempt.task, calls)
            warm_up(attempt)
        return verdict_of(failed) if failed else None

    def time(self, attempt: Attempt) -> Verdict | None:
        """Times all train and unseen workloads. Bounds include the noise floor (rules 18-20).

        Outputs of timed calls are left in `attempt.deferred`, unless there is a verdict already.
        """
        attempt.device.free_unused_memory()  # a PyTorch baseline may need as much as the oracle
        verdict = _time_all(attempt)
        _baseline_session(attempt).release_pool()
        if verdict is None:
            return None
        wrong = attempt.check_deferred()  # wrong values explain more than an impossible time
        return Verdict(Outcome.WRONG_VALUES, wrong) if wrong else verdict

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
            session.release_pool()
            baseline.close()
        return times


def _build_recorded(attempt: Attempt) -> Verdict | None:
    """Loads a candidate of an imported task, and calls it and the suite's code on each workload.

    Their functions are called as they are: what they compile is known by then only. What fails here
    fails again when values are checked, with a message there.
    """
    task, session = attempt.task, _timed(attempt.session)
    failed = session.load(task.problem.assembled(attempt.source))
    if failed is not None:
        return verdict_of(failed)
    where = attempt.device.description.torch_device
    for workload in (w for split in Split for w in task.problem.stated_workloads(split) or ()):
        seed = attempt.data_seed("build", workload.key)
        with attempt.device.held(Exclusivity.SHARED):
            inputs = make_inputs(task.problem, workload, seed, where)
            attempt.baseline.call(task, inputs, workload.dims)
            call = session.call(inputs, workload.dims)
        if isinstance(call, Failed):
            break
    return None


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


def _shapes_only(attempt: Attempt, workload: Workload) -> Mapping[str, Value] | None:
    """Returns inputs without values, or None if drawing the inputs depends on drawn values."""
    try:
        return make_inputs(attempt.task.problem, workload, 0, torch.device("meta"))
    except RuntimeError:  # PyTorch refuses; the kernel compiles at its first call then
        return None


def _time_all(attempt: Attempt) -> Verdict | None:
    """Times every workload, and all of them again if stamps account for too little time."""
    noise = noise_floor(attempt.device, compare_sessions)
    share = 0.0
    for number in range(CLOCK.tries):
        purpose = f"time {number}"
        if number:
            _prepare_another_try(attempt)
        shares = []
        for index, workload in enumerate(attempt.workloads):
            if not workload.timed:
                continue
            longer = CLOCK.retry_block_factor if number else 1
            result = _time_workload(attempt, index, workload, noise, purpose, longer)
            if isinstance(result, Verdict):
                return result
            shares.append(result.unaccounted_share)
        share = statistics.median(shares) if shares else 0.0
        if share <= CLOCK.median_share:
            return None
    text = f"{share:.0%} more time passed in timed calls than their stamps account for"
    return Verdict(Outcome.INVALID_TIMING, text)


def _time_workload(
    attempt: Attempt, index: int, workload: Workload, noise: float, purpose: str, longer: int
) -> PairedResult | Verdict:
    """Times one workload and adds the times to its result.

    Args:
        attempt: The evaluation.
        index: The position of the workload's result.
        workload: The workload.
        noise: The noise floor, by which the bounds are wider.
        purpose: Distinguishes the random draws of this try.
        longer: Blocks are this many times as long as usual.
    """
    roofline = attempt.roofline_seconds(workload)
    limit = PLAUSIBILITY.physics_share * roofline
    result = _compare(attempt, workload, purpose, longer)
    if isinstance(result, PairedResult) and result.candidate_seconds < limit:
        result = _compare(attempt, workload, f"{purpose} again", longer)
        if isinstance(result, PairedResult) and result.candidate_seconds < limit:
            return impossible(result.candidate_seconds, roofline, workload)
    if isinstance(result, Verdict):
        return result
    if not result.clock_agrees:
        text = (
            f"in a block of timed calls {result.unaccounted_seconds * 1e6:.0f} us passed that its "
            f"stamps ({result.claimed_seconds * 1e6:.0f} us) do not account for, beyond the "
            "baseline's"
        )
        return Verdict(Outcome.INVALID_TIMING, text)
    mean, half = result.interval.mean, result.interval.half
    if mean > math.log(PLAUSIBILITY.audit_speedup):
        attempt.label("audit: more than 10 times the baseline")
    attempt.amend(
        index,
        candidate_seconds=result.candidate_seconds,
        baseline_seconds=result.baseline_seconds,
        roofline_seconds=roofline,
        speedup=math.exp(mean),
        speedup_low=math.exp(mean - half - noise),
        speedup_high=math.exp(mean + half + noise),
    )
    return result


def _prepare_another_try(attempt: Attempt) -> None:
    """Reduces host overhead before a candidate is timed again in longer blocks.

    Host overhead differs between processes and CPUs. On a host with more runnable tasks than CPUs
    whole blocks are delayed.
    """
    attempt.label("late: timed again")
    wait_for_idle_cpus()
    for session in (_baseline_session(attempt), _timed(attempt.session)):
        session.move_to_other_cpu()


def _compare(
    attempt: Attempt, workload: Workload, purpose: str, longer: int
) -> PairedResult | Verdict:
    """Compares on one workload, and again while the clocks disagree."""
    result = _compare_once(attempt, workload, purpose, longer)
    for number in range(1, CLOCK.tries):
        if isinstance(result, Verdict) or not result.worth_a_retry:
            break
        _prepare_another_try(attempt)
        purpose_again = f"{purpose}, try {number}"
        result = _compare_once(attempt, workload, purpose_again, CLOCK.retry_block_factor)
    return result


def _compare_once(
    attempt: Attempt, workload: Workload, purpose: str, longer: int
) -> PairedResult | Verdict:
    result = compare_sessions(
        attempt.task,
        workload,
        _baseline_session(attempt),
        _timed(attempt.session),
        attempt.data_seed(purpose, workload.key),
        attempt.device,
        attempt.deferred,
        longer,
    )
    return verdict_of(result) if isinstance(result, Failed) else result


def compare_sessions(
    task: Task,
    workload: Workload,
    baseline: TimedSession,
    candidate: TimedSession,
    seed: int,
    device: Device,
    deferred: DeferredChecks,
    longer: int = 1,
) -> PairedResult | Ended:
    """Compares two sessions on one workload.

    Args:
        task: What both sides solve.
        workload: The workload.
        baseline: One side. Its failures are failures of the machine.
        candidate: The other side.
        seed: The seed of data and order.
        device: The GPU.
        deferred: Takes the outputs of timed calls that are checked later.
        longer: Blocks are this many times as long as usual.

    Raises:
        InfraError: The baseline failed, or two input sets do not fit.
    """
    description = device.description
    pool = InputPool(task, workload, seed, candidate.memory, description.torch_device, times=longer)
    with baseline.paused_between_requests(), candidate.paused_between_requests():
        failed = baseline.load_pool(pool.sets, workload.dims)
        if failed is not None:
            raise InfraError(f"the baseline failed while it was timed: {failed.message}")
        failed = candidate.load_pool(pool.sets, workload.dims)
        if failed is not None:
            return failed
        setup = PairedSetup(
            sets=len(pool.sets),
            prepare=lambda fresh, calls: pool.prepare(
                candidate if fresh else baseline, calls, fresh
            ),
            verify=lambda calls: pool.verify(candidate, calls, deferred),
            flush_seconds=2 * description.spec.flush_bytes / description.spec.memory_bandwidth,
            clock=time.perf_counter,
            rng=random.Random(seed),
            longer=longer,
        )
        return PairedBenchmark(baseline, candidate, setup).run()


def seconds_alone(
    task: Task, workload: Workload, session: TimedSession, seed: int, device: Device
) -> float | Failed:
    """Returns the median time of one call with cold caches, for head-room and never for pay.

    Short calls are timed by graph replay where that is possible, as in comparisons.

    Args:
        task: What the session solves.
        workload: The workload.
        session: The session that is timed.
        seed: The seed of the data.
        device: The GPU, which nobody else may use meanwhile.

    Returns:
        Seconds, or why the worker failed.

    Raises:
        InfraError: Two input sets do not fit.
    """
    where = device.description.torch_device
    pool = InputPool(task, workload, seed, session.memory, where, TIMING.pilot_calls)
    calls = len(pool.sets)
    failed = session.load_pool(pool.sets, workload.dims)
    if failed is not None:
        return failed
    pool.prepare(session, calls, fresh=False)
    block = session.time_calls(calls, TIMING.pilot_lead)
    if isinstance(block, Failed):
        return block
    seconds = statistics.median(block.call_seconds)
    short = seconds < TIMING.graph_below_seconds and not pool.in_place
    if short and session.capture_graph() is None:
        return _replay_seconds(session, calls)
    return seconds


def _replay_seconds(session: TimedSession, calls: int) -> float | Failed:
    """Returns the median time of one call over some replays of a graph of so many calls."""
    seconds: list[float] = []
    for _ in range(TIMING.pilot_calls):
        block = session.replay_graph(TIMING.pilot_lead)
        if isinstance(block, Failed):
            return block
        seconds += block.call_seconds
    return statistics.median(seconds) / calls
