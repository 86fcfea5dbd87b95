"""Evidence: what a package's kernel earned, where, and digests of what was judged."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from kernel_gym.errors import InputError
from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.records import Clock, Evaluation, Outcome, Record, source_digest
from kernel_gym.storage.json_lines import first_line
from kernel_gym.tasks import Split, Task

EVIDENCE_VERSION = 1
EVIDENCE = "evidence.json"
MAX_EVIDENCE_BYTES = 4 << 20
Ratio = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PackageError(InputError, ValueError):
    """A record cannot be packaged, or a package is not what it says. The message says why."""


class Measured(Record):
    """The speed-up of one timed workload."""

    dims: dict[str, int]
    split: Split
    speedup: Ratio = Field(description="baseline over candidate")
    low: Ratio = Field(description="the lower end of its interval")
    high: Ratio = Field(description="the upper end of its interval")


class Evidence(Record):
    """The evidence of a package.

    Attributes:
        evidence_version: The version of this form.
        task: The task that was judged.
        protocol_version: The version of the protocol of evaluation.
        device: The device that judged.
        architecture: The architecture of its GPU, such as gfx942.
        clock: Whether times were modelled or measured.
        speedup: The geometric mean over train workloads, and the lower end of its interval.
        unseen_speedup: The same over workloads that the author never saw.
        workloads: All timed workloads.
        seed: The seed of the draws; None if it came from the system.
        source_sha256: Digest of the kernel's source.
        record_sha256: Digest of the whole record, as JSON of its fields.
        versions: Versions of what judged, by name.
        files: Digests of the package's files, by path.
        backward: The evidence of the kernel that computes the gradient; None without one.
    """

    evidence_version: int = EVIDENCE_VERSION
    task: str
    protocol_version: str
    device: str
    architecture: str
    clock: Clock
    speedup: Ratio
    speedup_low: Ratio
    unseen_speedup: Ratio
    unseen_speedup_low: Ratio
    workloads: tuple[Measured, ...]
    seed: int | None
    source_sha256: str
    record_sha256: str
    versions: dict[str, str]
    files: dict[str, str] = Field(default_factory=dict)
    backward: Evidence | None = None

    @property
    def backend(self) -> str:
        """The backend that PyTorch has to be built for, as `kernels` names it."""
        return "rocm" if self.architecture.startswith("gfx") else "cuda"

    @property
    def capability(self) -> str:
        """The architecture as a device reports it: code for `sm_90a` runs where `sm_90` is."""
        is_nvidia = self.architecture.startswith("sm_")
        return self.architecture.rstrip("abcdef") if is_nvidia else self.architecture


def evidence_of(
    task: Task, evaluation: Evaluation, source: str, device: str, architecture: str
) -> Evidence:
    """Returns the evidence of a record.

    Args:
        task: The task.
        evaluation: The record.
        source: The kernel's source.
        device: The device that judged, by name.
        architecture: The architecture of its GPU.

    Raises:
        PackageError: The kernel did not pass, the record is of another protocol, task or source, it
            has no speed-up on unseen workloads, or it compares with another kernel although plain
            PyTorch, which the package falls back to, can be compared with.
    """
    require_torch(task)
    if evaluation.outcome is not Outcome.PASSED:
        raise PackageError(
            f"{task.id}: the record's outcome is {evaluation.outcome}, expected passed"
        )
    if evaluation.protocol_version != PROTOCOL_VERSION:
        raise PackageError(
            f"{task.id}: the record has version {evaluation.protocol_version} of the protocol, "
            f"expected {PROTOCOL_VERSION}: judge the source again"
        )
    digest = source_digest(source)
    if digest != evaluation.source_sha256 or task.id != evaluation.task:
        raise PackageError(
            f"{task.id}: the record speaks of {evaluation.task} and a source with digest "
            f"{evaluation.source_sha256[:12]}, found {digest[:12]}: the source was changed"
        )
    rates = (evaluation.speedup, evaluation.unseen_speedup)
    lows = (evaluation.speedup_low, evaluation.unseen_speedup_low)
    if None in rates:
        raise PackageError(f"{task.id}: the record has no speed-up on unseen workloads")
    speedup, unseen = (rate or 0.0 for rate in rates)
    low, unseen_low = (
        bound if bound is not None else rate or 0.0 for bound, rate in zip(lows, rates, strict=True)
    )
    return Evidence(
        task=task.id,
        protocol_version=evaluation.protocol_version,
        device=device,
        architecture=architecture,
        clock=evaluation.clock,
        speedup=speedup,
        speedup_low=low,
        unseen_speedup=unseen,
        unseen_speedup_low=unseen_low,
        workloads=_measured(evaluation),
        seed=evaluation.seed,
        source_sha256=digest,
        record_sha256=sha256(evaluation.model_dump_json().encode()),
        versions=evaluation.versions,
    )


def require_torch(task: Task) -> None:
    """Refuses a task that does not compare with plain PyTorch, although it is a fair baseline.

    Raises:
        PackageError: The message names the task of the same problem and language that does.
    """
    if task.baseline != "torch" and task.problem.fair_reference:
        raise PackageError(
            f"{task.id}: its record compares with the task's start kernel, expected plain PyTorch, "
            "which a package runs where its kernel is not faster: give "
            f"--task torch2{task.written_in}/{task.problem.name}"
        )


def _measured(evaluation: Evaluation) -> tuple[Measured, ...]:
    """Returns the timed workloads of a record."""
    return tuple(
        Measured(
            dims=result.dims,
            split=result.split,
            speedup=result.speedup,
            low=result.speedup if result.speedup_low is None else result.speedup_low,
            high=result.speedup if result.speedup_high is None else result.speedup_high,
        )
        for result in evaluation.workloads
        if result.timed and result.speedup is not None
    )


def read_evidence(folder: Path) -> Evidence:
    """Reads the evidence of a package.

    Raises:
        PackageError: The file is missing, too large or malformed, or has another version.
    """
    path = folder / EVIDENCE
    if not path.is_file():
        raise PackageError(f"{folder}: found no {EVIDENCE}, expected a package")
    if path.stat().st_size > MAX_EVIDENCE_BYTES:
        raise PackageError(f"{path}: more than {MAX_EVIDENCE_BYTES} bytes")
    try:
        evidence = Evidence.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise PackageError(f"{path}: {first_line(error)}") from error
    if evidence.evidence_version != EVIDENCE_VERSION:
        raise PackageError(
            f"{path}: version {evidence.evidence_version}, expected {EVIDENCE_VERSION}"
        )
    return evidence


def sha256(data: bytes) -> str:
    """Returns the SHA-256 of bytes, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
