"""The state of one evaluation while it passes through the stages."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kernel_gym.devices.base import (
    Audit,
    Call,
    Device,
    Failed,
    FailureKind,
    Session,
)
from kernel_gym.devices.looking_ahead import ExpectedCall
from kernel_gym.devices.plan_store import EvaluationPlans
from kernel_gym.judge.ahead import Ahead
from kernel_gym.judge.expected import Expected, ExpectedCache
from kernel_gym.judge.reference import answer_of_worker, expect_of_worker
from kernel_gym.judge.timing.baselines import BaselineRunner
from kernel_gym.judge.timing.deferred_checks import DeferredChecks
from kernel_gym.records import KernelFacts, Outcome, Stage, WorkloadResult
from kernel_gym.storage.secret import RunSecret
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Split, Workload


@dataclass(frozen=True)
class Verdict:
    """A failure that ends the evaluation."""

    outcome: Outcome
    message: str
    detail: str = ""
    values_alone: bool = False
    """Whether values of a check are wrong, and no audit or other order has shown a race."""


@dataclass
class Attempt:
    """One source on one task: its inputs, and the results so far."""

    task: Task
    source: str
    device: Device
    seed: int
    """The public seed. Random choices depend on it and on `secret`."""
    secret: RunSecret
    baseline: BaselineRunner
    cache: ExpectedCache
    session: Session | None = None
    stage: Stage = Stage.SCREEN
    labels: list[str] = field(default_factory=list)
    results: list[WorkloadResult] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)
    facts: tuple[KernelFacts, ...] = ()
    repeated: tuple[int, float] | None = None
    """Index of the workload that was called twice on the same data, and seconds of the repeat."""
    launched: dict[int, tuple[KernelFacts, ...]] = field(default_factory=dict)
    """The kernels that train workloads launched, by index in `results`."""
    paid: dict[str, Workload] = field(default_factory=dict)
    """The machine codes that ran in paid calls, each with a workload."""
    audited: set[str] = field(default_factory=set)
    """The machine codes with an audited launch."""
    compiler_fault: str = ""
    """The first race that the compiler has made in a kernel of the candidate."""
    baseline_seconds: dict[int, float] = field(default_factory=dict)
    """The time of the baseline on the inputs of a result, by the number of the result."""
    plans: EvaluationPlans | None = None
    """Where the plans of calls are stored, or read from when it is judged again."""
    ahead: Ahead | None = None
    """Computes values before they are needed, if the evaluation has a second processor."""
    deferred: DeferredChecks = field(init=False)
    """Timed calls that are checked later."""

    def __post_init__(self) -> None:
        """Chooses who knows the answers to timed calls."""
        known = None
        if self.task.problem.worker_reference is not None:
            known = functools.partial(_answer_of_worker, self.task, self.baseline)
        self.deferred = DeferredChecks(known)

    def data_seed(self, *parts: object) -> int:
        """Derives a seed for one purpose from the public seed and the secret of the run.

        Everything that a candidate must not know in advance is drawn from such a seed.
        """
        return self.secret.draw(self.seed, self.task.id, *parts)

    def sample_seed(self, workload: Workload) -> int:
        """Returns the seed of the workgroups that the timing model samples on a workload."""
        return self.data_seed("samples", workload.key)

    def expected(self, workload: Workload, purpose: str) -> Expected:
        """Returns inputs and answers of a workload, with different data for each purpose."""
        seed = self.data_seed(purpose, workload.key)
        where = self.device.description.torch_device
        make = None
        if self.task.problem.worker_reference is not None:
            make = functools.partial(
                expect_of_worker,
                self.task,
                workload,
                seed,
                self.baseline,
                where,
                self.sample_seed(workload),
            )
        return self.cache.get(self.task.problem, workload, seed, where, make)

    def prepare(self, workloads: Iterable[Workload], purpose: str) -> None:
        """Has the values of workloads computed ahead, if that is done here."""
        if self.ahead is not None:
            for workload in workloads:
                self.ahead.add(functools.partial(self.expected, workload, purpose))

    def expected_call(
        self, workload: Workload, purpose: str, repeats: bool = False
    ) -> ExpectedCall:
        """Describes a call for a session that looks ahead."""
        return ExpectedCall(
            lambda: self.expected(workload, purpose).inputs,
            workload.dims,
            self.sample_seed(workload) if repeats else None,
        )

    def baseline_seconds_on(self, workload: Workload) -> float:
        """Returns the time of the baseline on the data with which the candidate is checked.

        Raises:
            InfraError: The baseline failed. The task or the device is broken, not the candidate.
        """
        purpose = str(workload.split)
        inputs = self.expected(workload, purpose).inputs
        seed = self.data_seed(purpose, workload.key)
        return self.baseline.seconds_on(
            self.task, workload, seed, inputs, self.sample_seed(workload)
        )

    def call(
        self,
        workload: Workload,
        expected: Expected,
        noop: bool = False,
        audit: Audit = Audit.OFF,
    ) -> Call | Failed:
        """Calls the candidate on a workload."""
        assert self.session is not None
        self.session.sample_from(self.sample_seed(workload))
        call = self.session.call(expected.inputs, workload.dims, noop, audit)
        if isinstance(call, Call):
            self.audited |= call.audited
            self.compiler_fault = self.compiler_fault or call.compiler_fault
        return call

    def roofline_seconds(self, workload: Workload) -> float:
        """Returns the least time that the device's data sheet allows for a workload."""
        problem, dims = self.task.problem, workload.dims
        moved, flops = problem.bytes(dims), problem.flops(dims)
        spec = self.device.description.spec
        return spec.roofline_seconds(moved, flops, *problem.dtypes_at(dims))

    def note(self, workload: Workload, passed: bool, **fields: object) -> None:
        """Records the result of a workload."""
        self.workloads.append(workload)
        self.results.append(
            WorkloadResult(
                dims=dict(workload.dims),
                split=workload.split,
                kind=workload.kind,
                distribution=workload.distribution,
                layout=workload.layout,
                scalars=dict(workload.scalars),
                timed=workload.timed,
                passed=passed,
                **fields,  # type: ignore[arg-type]
            )
        )

    def amend(self, index: int, **fields: object) -> None:
        """Adds times to the result of a workload."""
        self.results[index] = self.results[index].model_copy(update=fields)

    def check_deferred(self) -> str:
        """Checks timed calls. Describes a wrong one, whose workload fails; empty if none is."""
        wrong = self.deferred.check()
        if wrong and self.deferred.wrong in self.workloads:
            self.amend(self.workloads.index(self.deferred.wrong), passed=False, message=wrong)
        return wrong

    def label(self, text: str) -> None:
        """Adds a label, which is counted and decides nothing."""
        if text not in self.labels:
            self.labels.append(text)

    def failed(self, split: Split) -> list[WorkloadResult]:
        """Returns the results of failed workloads of a split."""
        return [r for r in self.results if r.split is split and not r.passed]


def _answer_of_worker(
    task: Task, baseline: BaselineRunner, workload: Workload, inputs: Mapping[str, Value]
) -> Expected:
    return answer_of_worker(task, workload, inputs, baseline)


_OUTCOMES = {
    FailureKind.COMPILE: Outcome.COMPILE_ERROR,
    FailureKind.RUNTIME: Outcome.RUNTIME_ERROR,
    FailureKind.TIMEOUT: Outcome.TIMEOUT,
}


def verdict_of(failed: Failed) -> Verdict:
    """Returns the verdict on a candidate's failure in its worker."""
    return Verdict(_OUTCOMES[failed.kind], failed.message, failed.detail)


def hidden(verdict: Verdict, split: Split) -> Verdict:
    """Reduces a verdict on hidden workloads to how the candidate failed."""
    how = {
        Outcome.WRONG_VALUES: "wrong values",
        Outcome.WRONG_METADATA: "wrong shape, dtype or strides",
        Outcome.RUNTIME_ERROR: "crash or out-of-bounds access",
        Outcome.TIMEOUT: "no answer in time",
        Outcome.COMPILE_ERROR: "does not compile for it",
    }.get(verdict.outcome, str(verdict.outcome))
    outcome = Outcome.UNSEEN_FAILED if split is Split.UNSEEN else verdict.outcome
    return replace(
        verdict, outcome=outcome, message=f"fails on {split} workloads: {how}", detail=""
    )
