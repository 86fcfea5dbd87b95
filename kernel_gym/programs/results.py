"""Reads the documents that the processes of a program wrote, and sums them up.

`kernel_gym.simulated_rocm.result_recorder` writes them. A program may crash at any point and may
write nonsense into its documents, so that each line is checked, and what is no record is only
counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kernel_gym.inert import inert_line, inert_object
from kernel_gym.sim.engine.faults import AUDIT_KINDS
from kernel_gym.sim.timing.folders import without_folders

Text = Annotated[str, AfterValidator(inert_line)]
Dim3 = tuple[int, int, int]
SUFFIX = ".jsonl"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ProcessRecord(_Record):
    """The first line of a document."""

    record: Literal["process"]
    pid: int
    parent: int = 0
    command: list[Text] = []
    host: Text = ""
    device: Text = ""
    facts: dict[Text, Text] = {}


class LaunchRecord(_Record):
    """A launch that ran to its end; the profile comes with the longest one so far."""

    record: Literal["launch"]
    kernel: Text
    grid: Dim3
    block: Dim3
    lds: int = 0
    seconds: float | None = None
    clock: float = 0.0
    profile: dict[str, object] | None = None


class FaultRecord(_Record):
    """A launch that was stopped, or what was found in one that continued."""

    record: Literal["fault", "finding"]
    kind: Text
    message: Text
    kernel: Text = ""
    instruction: Text = ""
    source: Text = ""
    other_source: Text = ""


class MissingRecord(_Record):
    """Something that the program needed and that is not there."""

    record: Literal["missing"]
    what: Text
    name: Text
    where: Text = ""
    message: Text = ""


class FailureRecord(_Record):
    """The device could not be brought up in this process."""

    record: Literal["failure"]
    message: Text


class EndRecord(_Record):
    """A regular end of the process."""

    record: Literal["end"]
    clock: float = 0.0


Record = Annotated[
    ProcessRecord | LaunchRecord | FaultRecord | MissingRecord | FailureRecord | EndRecord,
    Field(discriminator="record"),
]
ProgramResult = dict[str, Any]
"""The result of a program as a JSON object, see `docs/programs.md`."""
_RECORD: TypeAdapter[object] = TypeAdapter(Record)


@dataclass
class KernelSummary:
    """All launches of a kernel.

    Attributes:
        launches: How many.
        seconds: Modelled time of all of them.
        longest: Modelled time of the longest one. The others describe that launch.
        grid: Workgroups along each axis.
        block: Threads of a workgroup along each axis.
        lds: Bytes of LDS of a workgroup.
        profile: Its profile.
    """

    launches: int = 0
    seconds: float = 0.0
    longest: float = -1.0
    grid: Dim3 = (0, 0, 0)
    block: Dim3 = (0, 0, 0)
    lds: int = 0
    profile: dict[str, object] = field(default_factory=dict)

    def add(self, launch: LaunchRecord) -> None:
        """Counts one more launch."""
        seconds = launch.seconds or 0.0
        self.launches += 1
        self.seconds += seconds
        if seconds > self.longest and launch.profile is not None:
            self.longest, self.grid, self.block = seconds, launch.grid, launch.block
            self.lds, self.profile = launch.lds, without_folders(inert_object(launch.profile))


@dataclass
class Process:
    """One process that used the device; `ended` is false after a crash or a kill."""

    pid: int
    command: list[str]
    host: str
    device: str
    facts: dict[str, str]
    launches: int = 0
    seconds: float = 0.0
    ended: bool = False


@dataclass
class Summary:
    """The work of a program on its device, summed over its processes.

    Attributes:
        kernels: By name.
        processes: Those that used the device.
        faults: Launches that were stopped.
        findings: What was found in launches that continued.
        missing: What the program needed and did not get.
        failures: Why a process has no device.
        unread: Lines that are no records.
    """

    kernels: dict[str, KernelSummary] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    faults: list[dict[str, object]] = field(default_factory=list)
    findings: list[dict[str, object]] = field(default_factory=list)
    missing: list[dict[str, object]] = field(default_factory=list)
    failures: list[dict[str, object]] = field(default_factory=list)
    unread: int = 0

    @property
    def launches(self) -> int:
        """Launches that ran to their end."""
        return sum(process.launches for process in self.processes)

    @property
    def seconds(self) -> float:
        """Modelled seconds of all processes: launches, operators and copies."""
        return sum(process.seconds for process in self.processes)

    def add(self, values: Iterable[object]) -> None:
        """Adds the records of one process."""
        process = Process(0, [], "", "", {})
        self.processes.append(process)
        for value in values:
            try:
                record = _RECORD.validate_python(value, strict=False)
            except ValidationError:
                self.unread += 1
                continue
            self._take(record, process)

    def _take(self, record: Any, process: Process) -> None:
        if isinstance(record, LaunchRecord):
            process.launches += 1
            process.seconds = record.clock
            self.kernels.setdefault(record.kernel, KernelSummary()).add(record)
        elif isinstance(record, ProcessRecord):
            process.pid, process.command = record.pid, record.command
            process.host, process.device, process.facts = record.host, record.device, record.facts
        elif isinstance(record, EndRecord):
            process.ended, process.seconds = True, record.clock
        else:
            entry = record.model_dump(exclude={"record"}) | {"pid": process.pid}
            kind = "missing" if isinstance(record, MissingRecord) else record.record + "s"
            getattr(self, kind).append(entry)

    def to_json(self) -> ProgramResult:
        """Returns JSON-able data. Times are in seconds, modelled."""
        kernels = sorted(self.kernels.items(), key=lambda item: -item[1].seconds)
        return {
            "clock": "modelled",
            "launches": self.launches,
            "seconds": self.seconds,
            "kernels": {name: vars(kernel) for name, kernel in kernels},
            "faults": self.faults,
            "findings": self.findings,
            "missing": self.missing,
            "failures": self.failures,
            "processes": [vars(process) for process in self.processes],
            "unread": self.unread,
        }


def read_results(folder: Path) -> Summary:
    """Sums up the documents of a folder."""
    summary = Summary()
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        summary.add(_values(path))
    return summary


def _values(path: Path) -> Iterator[object]:
    """Yields the JSON values of a document. What is no JSON comes as None."""
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return  # torn: the process was ended while it wrote
            try:
                yield json.loads(line)
            except ValueError:
                yield None


def of_audits(findings: Iterable[ProgramResult]) -> list[ProgramResult]:
    """Returns the findings of audits, without suppressed ones.

    Accesses just outside an allocation are not among them.
    """
    return [
        finding
        for finding in findings
        if finding["kind"] in AUDIT_KINDS and not finding.get("suppressed")
    ]
