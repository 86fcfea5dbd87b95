"""The state of one evaluation as it goes through the stages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kernel_gym.devices.base import Audit, Call, Device, Failed, FailureKind, Session
from kernel_gym.judge.expected import Expected, ExpectedCache
from kernel_gym.judge.timing.baselines import Baseline
from kernel_gym.judge.timing.deferred_checks import Kept
from kernel_gym.records import KernelFacts, Outcome, Stage, WorkloadResult
from kernel_gym.storage.secret import RunSecret
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Split, Workload


@dataclass(frozen=True)
class Verdict:
    """A failure that ends the evaluation."""

    outcome: Outcome
    message: str
    detail: str = ""


@dataclass
class Attempt:
    """One source on one task: what it is given, and what has been found so far."""

    task: Task
    source: str
    device: Device
    seed: int
    """The public one: draws come from it and from `secret`."""
    secret: RunSecret
    baseline: Baseline
    cache: ExpectedCache
    session: Session | None = None
    stage: Stage = Stage.SCREEN
    labels: list[str] = field(default_factory=list)
    results: list[WorkloadResult] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)
    facts: tuple[KernelFacts, ...] = ()
    cross: tuple[KernelFacts, ...] = ()
    repeated: tuple[int, float] | None = None
    """Which workload was called twice on the same data, and the second time's seconds."""
    launched: dict[int, tuple[KernelFacts, ...]] = field(default_factory=dict)
    """What train workloads launched, by their place in `results`."""
    paid: dict[str, Workload] = field(default_factory=dict)
    """The machine codes that ran in calls which are paid, with a workload of each."""
    audited: set[str] = field(default_factory=set)
    """The machine codes of which a launch was audited."""
    kept: Kept = field(default_factory=Kept)
    """Timed calls that are still to be checked."""

    def data_seed(self, *parts: object) -> int:
        """A seed for one purpose, from the evaluation's own and the secret of its run.

        Everything that a candidate must not know in advance is drawn from here.
        """
        return self.secret.draw(self.seed, self.task.id, *parts)

    def expected(self, workload: Workload, purpose: str) -> Expected:
        """Inputs and answers of a workload, with data of its own for each purpose."""
        seed = self.data_seed(purpose, workload.key)
        return self.cache.get(self.task.problem, workload, seed, self.device.where)

    def call(
        self,
        workload: Workload,
        expected: Expected,
        noop: bool = False,
        audit: Audit = Audit.OFF,
    ) -> Call | Failed:
        """Calls the candidate on a workload."""
        assert self.session is not None
        found = self.session.call(expected.inputs, workload.dims, noop, audit)
        if isinstance(found, Call):
            self.audited |= found.audited
        return found

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
                passed=passed,
                **fields,  # type: ignore[arg-type]
            )
        )

    def amend(self, index: int, **fields: object) -> None:
        """Adds times to the result of a workload."""
        self.results[index] = self.results[index].model_copy(update=fields)

    def label(self, text: str) -> None:
        """Notes something worth counting; labels decide nothing."""
        if text not in self.labels:
            self.labels.append(text)

    def failed(self, split: Split) -> list[WorkloadResult]:
        """The workloads of a split that failed."""
        return [r for r in self.results if r.split is split and not r.passed]


_OUTCOMES = {
    FailureKind.COMPILE: Outcome.COMPILE_ERROR,
    FailureKind.RUNTIME: Outcome.RUNTIME_ERROR,
    FailureKind.TIMEOUT: Outcome.TIMEOUT,
}


def verdict_of(failed: Failed) -> Verdict:
    """The outcome of a candidate's failure in its worker."""
    return Verdict(_OUTCOMES[failed.kind], failed.message, failed.detail)


def hidden(verdict: Verdict, split: Split) -> Verdict:
    """A failure on workloads the policy may not see: that it failed and how, nothing more."""
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
