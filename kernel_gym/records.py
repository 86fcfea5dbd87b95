"""The records: the results of one evaluation, as frozen data with a JSON form.

A failure of a submission is a value here: an outcome, a stage and a message. A failure of the
machine is an exception or the outcome `infra`, which training masks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    model_validator,
)

from kernel_gym.inert import inert_json, inert_line, inert_text
from kernel_gym.tasks.workload import Kind, Layout, Split

SCHEMA_VERSION = 1
RATIO_CLAMP = (0.1, 10.0)
"""The speedup of one workload is clamped to this range before the geometric mean (rule 24)."""


BROKEN_TASK = "broken task"
"""The label of an evaluation whose task has a reference or baseline that fails."""
COMPILER_RACE = "compiler race"
"""The label of a right kernel in which the compiler has made a race."""
MISCOMPILED = "miscompiled"
"""The label of a kernel with wrong values that is right without the compiler's optional passes."""
COMPILING = "still compiling"
"""The words of a message that name a kernel which the compiler did not finish in time."""
COMPILER_FAULTS = frozenset({COMPILER_RACE, MISCOMPILED})
"""Labels of evaluations that are `infra` because of the compiler: another try ends alike."""


def source_digest(source: str) -> str:
    """Returns the SHA-256 of a submission's text, which may hold lone surrogates."""
    return hashlib.sha256(source.encode("utf-8", errors="surrogatepass")).hexdigest()


class Outcome(StrEnum):
    """How an evaluation ended."""

    PASSED = "passed"
    SCREENED = "screened"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    WRONG_METADATA = "wrong_metadata"
    WRONG_VALUES = "wrong_values"
    UNSEEN_FAILED = "unseen_failed"
    TIMEOUT = "timeout"
    HACK = "hack"
    INVALID_TIMING = "invalid_timing"
    INFRA = "infra"


class Stage(StrEnum):
    """The stages of an evaluation, in order."""

    SCREEN = "screen"
    BUILD = "build"
    TRAIN = "train"
    ADVERSARIAL = "adversarial"
    UNSEEN = "unseen"
    TIME = "time"
    DONE = "done"


class Clock(StrEnum):
    """Where a time comes from. A modelled time is never presented as a measured one."""

    MODELLED = "modelled"
    MEASURED = "measured"


MAX_LABELS = 32
"""Labels of one evaluation."""

Line = Annotated[str, BeforeValidator(inert_line)]
"""One line in which a candidate may have had a hand: printable and of limited length."""
Name = Annotated[str, BeforeValidator(partial(inert_line, limit=400))]
"""The same for labels and for symbols, as a compiler of C++ makes them."""
Text = Annotated[str, BeforeValidator(inert_text)]
"""The same for many lines."""
Profile = Annotated[dict[str, JsonValue], BeforeValidator(inert_json)]
"""The profile of a launch, with names and lines of the candidate's source."""


def _few(labels: Sequence[object]) -> Sequence[object]:
    return labels[:MAX_LABELS]


class Record(BaseModel):
    """Frozen data that refuses unknown keys; NaN and infinities survive its JSON form."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_enum_values=False, ser_json_inf_nan="strings"
    )


class Element(Record):
    """The worst element of an output: where, what was expected, what was found."""

    output: str
    index: tuple[int, ...]
    expected: float
    found: float
    tolerance: float


class WorkloadResult(Record):
    """One workload of one evaluation. Times are seconds, sizes bytes."""

    dims: dict[str, int]
    split: Split
    kind: Kind
    distribution: str
    layout: Layout = Layout.CONTIGUOUS
    scalars: dict[str, int | float] = Field(default={}, description="arguments of this workload")
    timed: bool = Field(default=True, description="false: its values are checked, not its time")
    passed: bool
    message: Line = ""
    worst_error: float | None = Field(
        default=None, description="error over tolerance; 1.0 is the limit"
    )
    element: Element | None = None
    candidate_seconds: float | None = None
    baseline_seconds: float | None = None
    roofline_seconds: float | None = None
    speedup: float | None = Field(default=None, description="baseline over candidate")
    speedup_low: float | None = Field(
        default=None, description="lower bound; equal on the simulator"
    )
    speedup_high: float | None = None
    launches: int | None = None
    launch_seconds: float | None = Field(
        default=None,
        description="part of candidate_seconds that is the cost of launching; modelled only",
    )
    time_factor: float | None = Field(
        default=None, description="factor either way of candidate_seconds; modelled only"
    )
    speedup_factor: float | None = Field(
        default=None, description="factor either way of speedup over a kernel; modelled only"
    )
    uncalibrated: Line = Field(
        default="", description="why a modelled time has no factor, in words"
    )
    plan_sha256: Name = Field(
        default="", description="digest of the launch plan that was checked and timed"
    )
    plan_from: Name = Field(
        default="",
        description="`shapes`, or `values` if host code of an imported task has read some",
    )


def clamped(results: Iterable[WorkloadResult]) -> int:
    """Returns the number of workloads whose ratio of times is beyond :data:`RATIO_CLAMP`."""
    low, high = RATIO_CLAMP
    ratios = (result.speedup for result in results if result.timed and result.speedup is not None)
    return sum(not low <= ratio <= high for ratio in ratios)


class KernelFacts(Record):
    """The compiler's report on one kernel, and how the kernel ran on one workload.

    All figures belong to one binary. A kernel that is compiled again for other sizes has separate
    facts for each binary. An evaluation on the simulator has the facts of the binaries that one
    train workload launched: the workload with the most room to improve.
    """

    name: Name
    vgprs: int = Field(description="vector registers of a lane, the AGPRs among them")
    agprs: int = 0
    sgprs: int
    vgpr_spills: int = 0
    sgpr_spills: int = 0
    lds_bytes: int = 0
    scratch_bytes: int = 0
    instructions: int = 0
    arch: Name = Field("", description="what it was compiled for; empty: the evaluation's device")
    error: Line = Field("", description="why it does not compile for that architecture")
    binary: Name = Field("", description="hash of the code; empty where the device has none")
    workload: int | None = Field(
        default=None,
        description="place in `workloads` of what it was launched for; None: not known",
    )
    launches: int = Field(0, description="on that workload")
    seconds: float | None = Field(default=None, description="of all its launches there")
    waves_per_simd: float | None = None
    occupancy_limiter: Name | None = None
    bound_by: Name | None = None
    """The limit of its longest launch there: compute, hbm, l2, latency, launch or others."""
    profile: Profile = Field(default_factory=dict)
    """The device's profile of that launch. Only the slowest kernel has one."""


class Evaluation(Record):
    """The record of one evaluation of one source on one task."""

    schema_version: int = SCHEMA_VERSION
    protocol_version: str
    task: str
    device: str
    clock: Clock
    source_sha256: str
    problem_sha256: Name = Field(
        default="", description="digest of the texts that define the problem; empty in old records"
    )
    copied: bool = Field(
        default=False, description="it passed and is the start kernel up to comments and layout"
    )
    outcome: Outcome
    stage: Stage
    """The stage reached: `done` when the outcome is `passed`, else the one that failed."""
    message: Line = ""
    """One line for a person; empty when passed."""
    detail: Text = ""
    """The compiler's or the interpreter's text, trimmed."""
    labels: Annotated[tuple[Name, ...], BeforeValidator(_few)] = ()
    workloads: tuple[WorkloadResult, ...] = ()
    kernels: tuple[KernelFacts, ...] = ()
    cross_kernels: tuple[KernelFacts, ...] = ()
    """The kernels as compiled for other architectures, in records of earlier versions alone."""
    speedup: float | None = None
    """Geometric mean over train workloads, each clamped to [0.1, 10] (rule 24)."""
    speedup_low: float | None = None
    unseen_speedup: float | None = None
    unseen_speedup_low: float | None = None
    retention: float | None = None
    """Unseen speedup over train speedup."""
    seed: int | None = None
    """The seed of unseen workloads and data. They also depend on the secret of the run."""
    secret_sha256: str = ""
    """SHA-256 of the run's secret, which replays need; empty where the seed alone decided."""
    versions: dict[str, str] = Field(default_factory=dict)
    wall_seconds: dict[str, float] = Field(default_factory=dict)
    """Wall-clock time by stage: the only field in which two equal runs differ."""

    @model_validator(mode="after")
    def _outcome_agrees_with_the_rest(self) -> Self:
        """Checks what holds for every record: only a candidate that passed has a speedup.

        Raises:
            ValueError: The outcome contradicts the stage or the speedups.
        """
        passed = self.outcome is Outcome.PASSED
        if passed != (self.stage is Stage.DONE):
            raise ValueError(f"outcome {self.outcome} contradicts stage {self.stage}")
        if passed and (self.speedup is None or self.speedup_low is None):
            raise ValueError("outcome passed needs speedup and speedup_low")
        scores = (self.speedup, self.speedup_low, self.unseen_speedup, self.unseen_speedup_low)
        if not passed and any(score is not None for score in (*scores, self.retention)):
            raise ValueError(f"outcome {self.outcome} contradicts a speedup")
        if self.outcome is Outcome.INFRA and self.workloads:
            raise ValueError("outcome infra contradicts results of workloads")
        return self

    def by_split(self, split: Split) -> tuple[WorkloadResult, ...]:
        """The results of one split, in order."""
        return tuple(w for w in self.workloads if w.split is split)

    def canonical(self) -> str:
        """JSON without the wall-clock field: equal for equal runs on the simulator.

        A record that names no texts of its problem has none here, so that digests of older records
        stay as they are.
        """
        unnamed = set() if self.problem_sha256 else {"problem_sha256"}
        return self.model_dump_json(exclude={"wall_seconds", *unnamed})
