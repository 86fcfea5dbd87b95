"""Evaluates a submission: the pipeline, its retries, and the record.

Example:
    >>> from kernel_gym.evaluator import Evaluator
    >>> from kernel_gym.tasks import get_task
    >>> with Evaluator(device="sim:gfx942", seed=0) as evaluator:
    ...     evaluation = evaluator.evaluate(get_task("triton2triton/softmax"), "not a kernel")
    >>> str(evaluation.outcome)
    'compile_error'
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import torch

from kernel_gym.devices import open_device
from kernel_gym.devices.base import BrokenTaskError, DeviceLostError, InfraError
from kernel_gym.devices.description import TimingMethod
from kernel_gym.devices.plan_store import (
    EvaluationPlans,
    NoPlanError,
    PlanStore,
    evaluation_name,
)
from kernel_gym.judge.ahead import Ahead
from kernel_gym.judge.attempt import Attempt, Verdict
from kernel_gym.judge.expected import ExpectedCache
from kernel_gym.judge.profiled import profiled_kernels
from kernel_gym.judge.protocol import PROTOCOL_VERSION, RETRIES
from kernel_gym.judge.scores import geometric_speedup
from kernel_gym.judge.stages import PIPELINE, Step, ask_again
from kernel_gym.judge.timing.baselines import BaselineRunner, BaselineTimes
from kernel_gym.records import (
    BROKEN_TASK,
    Evaluation,
    Outcome,
    Stage,
    source_digest,
)
from kernel_gym.sandbox.spawn import TemplateError
from kernel_gym.storage.secret import PUBLIC, RunSecret, process_secret
from kernel_gym.tasks.content import digest_of
from kernel_gym.tasks.copies import is_copy
from kernel_gym.tasks.small_floats import require_runs_on
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Split

WAITING = "waiting"
"""The entry of `wall_seconds` for the wait until the device is free."""


@dataclass
class Caches:
    """State that the evaluators of one process share. Cached values depend on their keys only."""

    expected: ExpectedCache = field(default_factory=ExpectedCache)
    baselines: BaselineTimes = field(default_factory=BaselineTimes)


class Evaluator:
    """Evaluates submissions on one device, one at a time.

    Args:
        device: A device name; `auto` is the best one here.
        seed: With None, each evaluation draws unseen workloads and data from the operating
            system's randomness. With a number, all evaluations of a task draw the same.
        caches: Shared with other evaluators of this process.
        secret: The secret of the run. It is mixed into every draw, so that a candidate cannot
            compute draws from a seed that it knows. The default is a secret of this process: equal
            seeds draw the same while the process lives. With
            :data:`~kernel_gym.storage.secret.PUBLIC` a seed draws the same on every machine. Do not
            use that where a policy is paid or trained.
        plans: Where launch plans are stored, so that records can be judged again from them. Only
            simulated devices store plans.
        watch: Is called with the name of a stage when a step of it ends, for measurements.
        hurry: Whether a second thread works ahead, for an evaluation that somebody waits for. Only
            on devices that report modelled times: others measure them.

    Raises:
        UnknownDevice: There is no such device.
        InfraError: The device cannot be used.
    """

    def __init__(
        self,
        device: str = "auto",
        seed: int | None = None,
        caches: Caches | None = None,
        secret: RunSecret | None = None,
        plans: Path | None = None,
        watch: Callable[[str], None] | None = None,
        hurry: bool = False,
    ) -> None:
        self.device = open_device(device)
        self._seed = seed
        self._secret = process_secret() if secret is None else secret
        self._caches = caches or Caches()
        self._watch = watch or (lambda stage: None)
        self._baseline = BaselineRunner(self.device, self._caches.baselines)
        stores = plans is not None and self.device.description.device_per_session
        self._hurry = hurry and self.device.description.timing is TimingMethod.REPORTED
        self._plans = PlanStore(plans) if plans is not None and stores else None

    def evaluate(self, task: Task, source: str, seed: int | None = None) -> Evaluation:
        """Runs all stages on a source.

        Args:
            task: What the source should solve.
            source: Untrusted text.
            seed: Overrides the evaluator's seed for this evaluation.

        Returns:
            The record. A failure of the submission is an outcome. A failure of the machine is the
            outcome `infra`, after retries.

        Raises:
            UnfitDevice: The device lacks instructions for the task's types.
        """
        require_runs_on(task.problem, self.device.description.spec.arch)
        seed = seed if seed is not None else self._seed
        # 63 random bits that are used once need no secret, and can be replayed without one.
        draw = (secrets.randbits(63), PUBLIC) if seed is None else (seed, self._secret)
        errors: list[Exception] = []
        latest = time.monotonic() + RETRIES.seconds
        while not errors or (_may_retry(errors) and (_lost_last(errors) or _is_early(latest))):
            try:
                with _one_thread():
                    return self._evaluate_once(task, source, *draw)
            except (InfraError, TemplateError) as error:
                self._baseline.close()
                failure = error.with_traceback(None)  # its frames hold tensors on the device
                failure.__context__ = failure.__cause__ = None
            errors.append(self._attributed(failure, task))
        return self._gave_up(task, source, *draw, errors)

    def judge_again(self, task: Task, source: str, seed: int) -> Evaluation:
        """Runs all stages on the stored plans of an evaluation. No code of the source runs.

        Args:
            task: What the source should solve.
            source: Its text, which is screened.
            seed: The seed of the record.

        Returns:
            The record, which is equal to the first one on the same version of everything.

        Raises:
            NoPlanError: A call has no stored plan: its recording failed, or nothing was stored.
            InfraError: The device failed.
        """
        with _one_thread():
            return self._evaluate_once(task, source, seed, self._secret, again=True)

    @property
    def reference_baseline(self) -> BaselineRunner:
        """Runs baselines, and the own code of imported suites."""
        return self._baseline

    def close(self) -> None:
        """Ends the resident workers."""
        self._baseline.close()
        self.device.close()

    def __enter__(self) -> Evaluator:
        """Returns the evaluator."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the evaluator."""
        self.close()

    def _evaluate_once(
        self, task: Task, source: str, seed: int, secret: RunSecret, again: bool = False
    ) -> Evaluation:
        attempt = self._attempt(task, source, seed, secret, again)
        wall: dict[str, float] = defaultdict(float)
        verdict: Verdict | None = None
        try:
            for exclusivity, steps in PIPELINE:
                start = time.perf_counter()
                with self.device.held(exclusivity):
                    wall[WAITING] += time.perf_counter() - start
                    verdict = self._run(steps, attempt, wall)
                if verdict is not None:
                    break
            else:
                attempt.stage = Stage.DONE
            if attempt.session is not None:
                attempt.facts = attempt.session.facts()
            if verdict is not None and not again:  # a second opinion runs the source
                verdict = ask_again(attempt, verdict)
        finally:
            if attempt.ahead is not None:
                attempt.ahead.stop()
            if attempt.session is not None:
                with contextlib.suppress(TemplateError):
                    attempt.session.close()
        if attempt.plans is not None:
            attempt.plans.write()
        return self._record(attempt, verdict, wall)

    def _attempt(
        self, task: Task, source: str, seed: int, secret: RunSecret, again: bool
    ) -> Attempt:
        attempt = Attempt(
            task, source, self.device, seed, secret, self._baseline, self._caches.expected
        )
        if self._plans is not None:
            decided = (
                task.id,
                digest_of(task.problem),
                source_digest(source),
                self.device.description.name,
                seed,
                secret.sha256,
            )
            attempt.plans = EvaluationPlans(self._plans, evaluation_name(*decided), again)
        elif again:
            raise NoPlanError("no plans were stored")
        if self._hurry and task.problem.worker_reference is None:
            attempt.ahead = Ahead()
        return attempt

    def _run(
        self, steps: Sequence[Step], attempt: Attempt, wall: dict[str, float]
    ) -> Verdict | None:
        """Runs a group of steps, and records the seconds of each."""
        for stage, step in steps:
            attempt.stage = stage
            start = time.perf_counter()
            verdict = step(attempt)
            wall[stage] += time.perf_counter() - start
            self._watch(stage)
            if verdict is not None:
                return verdict
        return None

    def _attributed(self, error: Exception, task: Task) -> Exception:
        """If a trusted source cannot use the device either, the candidate did not lose it."""
        if isinstance(error, DeviceLostError) and not self.device.usable(task):
            return InfraError(
                f"{error}; nor can it be used without the candidate: run fewer evaluators on it, "
                "or see what `kernel-gym doctor` says"
            )
        return error

    def _record(
        self, attempt: Attempt, verdict: Verdict | None, wall: dict[str, float]
    ) -> Evaluation:
        results = attempt.results
        train = geometric_speedup(results, Split.TRAIN)
        unseen = geometric_speedup(results, Split.UNSEEN)
        passed = verdict is None
        if verdict is not None and verdict.outcome is Outcome.INFRA:
            results = []
        return Evaluation(
            protocol_version=PROTOCOL_VERSION,
            task=attempt.task.id,
            device=self.device.description.name,
            clock=self.device.description.clock,
            source_sha256=source_digest(attempt.source),
            problem_sha256=digest_of(attempt.task.problem),
            copied=passed and is_copy(attempt.task, attempt.source),
            outcome=verdict.outcome if verdict else Outcome.PASSED,
            stage=attempt.stage,
            message=verdict.message if verdict else "",
            detail=verdict.detail if verdict else "",
            labels=tuple(attempt.labels),
            workloads=tuple(results),
            kernels=profiled_kernels(attempt),
            speedup=train if passed else None,
            speedup_low=geometric_speedup(results, Split.TRAIN, "speedup_low") if passed else None,
            unseen_speedup=unseen if passed else None,
            unseen_speedup_low=(
                geometric_speedup(results, Split.UNSEEN, "speedup_low") if passed else None
            ),
            retention=unseen / train if passed and train and unseen else None,
            seed=attempt.seed,
            secret_sha256=attempt.secret.sha256,
            versions=self.device.versions(),
            wall_seconds=wall,
        )

    def _gave_up(
        self, task: Task, source: str, seed: int, secret: RunSecret, errors: list[Exception]
    ) -> Evaluation:
        """Returns a record without results. A device lost each time is the candidate's failure."""
        losses = _losses(errors)
        lost = losses == len(errors) or losses > RETRIES.device_lost
        return Evaluation(
            protocol_version=PROTOCOL_VERSION,
            task=task.id,
            device=self.device.description.name,
            clock=self.device.description.clock,
            source_sha256=source_digest(source),
            problem_sha256=digest_of(task.problem),
            outcome=Outcome.RUNTIME_ERROR if lost else Outcome.INFRA,
            stage=Stage.TRAIN if lost else Stage.BUILD,
            message=f"in each of {len(errors)} tries: {errors[-1]}" if lost else str(errors[-1]),
            labels=(BROKEN_TASK,) if isinstance(errors[-1], BrokenTaskError) else (),
            seed=seed,
            secret_sha256=secret.sha256,
            versions=self.device.versions(),
        )


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Has PyTorch compute on one thread of the CPU.

    It splits the sum of one long row over its threads, which changes the last bit of the oracle. A
    record must not depend on how many threads its judge happened to have.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _losses(errors: Sequence[Exception]) -> int:
    return sum(isinstance(error, DeviceLostError) for error in errors)


def _lost_last(errors: Sequence[Exception]) -> bool:
    """Whether the last try lost the device: the next one decides who is to blame, early or late."""
    return isinstance(errors[-1], DeviceLostError)


def _is_early(latest: float) -> bool:
    return time.monotonic() < latest


def _may_retry(errors: Sequence[Exception]) -> bool:
    return len(errors) <= RETRIES.infra and _losses(errors) <= RETRIES.device_lost


def evaluate(task: Task, source: str, device: str = "auto", seed: int | None = None) -> Evaluation:
    """Evaluates one source and closes the device again.

    Opening a device takes seconds, so keep an :class:`Evaluator` for more than one source.

    Args:
        task: The task that the source should solve.
        source: Untrusted text.
        device: A device name; `auto` takes the best one here.
        seed: None draws unseen workloads and data from the operating system's randomness.

    Returns:
        The record. A failure of the submission is an outcome of it.

    Raises:
        UnknownDevice: No such device.
        UnfitDevice: The device lacks instructions for the task's types.
    """
    with Evaluator(device, seed) as evaluator:
        return evaluator.evaluate(task, source)
