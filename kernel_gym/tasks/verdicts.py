"""Admission verdicts, stored as `admission.json` in the folder of each problem.

A verdict is valid for the content that it was reached on. It is ignored once a file of the problem
changes. `kernel-gym admit` writes verdicts, and rules of suites select by them.
"""

from __future__ import annotations

import hashlib

from pydantic import BaseModel, ConfigDict

from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.sources import source_of
from kernel_gym.tasks.status import Status
from kernel_gym.tasks.task import Mode, Task

FILE = "admission.json"
RULES_VERSION = "2"
"""Increased whenever rules or controls change, so that every problem is admitted again."""
HEAD_ROOM = 1.25
"""Least ratio of baseline time to roofline time. A task with a smaller ratio is saturated."""
FAILS = "fails"
"""The result of a control that is refused, as it must be."""


class ModeVerdict(BaseModel):
    """The verdict on one mode on one device."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: str
    """The version of the protocol by which the start kernel was judged."""
    refused: tuple[str, ...] = ()
    """Reasons for a refusal; empty if the mode is not refused."""
    head_room: float | None = None
    """Geometric mean, over train workloads, of baseline time over roofline time with a launch."""
    kernel: str = ""
    """The SHA-256 of a kernel that lies outside the problem's folder; empty if none does."""


class AdmissionVerdict(BaseModel):
    """The verdict on one problem: results of the controls, and of its modes by device."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: str
    rules: str = RULES_VERSION
    controls: dict[str, str]
    """By control: `fails`, why it does not apply, or which of its answers pass."""
    devices: dict[str, dict[Mode, ModeVerdict]]
    notes: tuple[str, ...] = ()
    """Observations that are no reason for a refusal."""

    def status(self, mode: Mode) -> Status:
        """Returns refused if any device refuses the mode, saturated if all have no head-room."""
        verdicts = [modes[mode] for modes in self.devices.values() if mode in modes]
        if not verdicts:
            return Status.UNKNOWN
        if any(verdict.refused for verdict in verdicts):
            return Status.REFUSED
        free = any((verdict.head_room or 0) > HEAD_ROOM for verdict in verdicts)
        return Status.ADMITTED if free else Status.SATURATED

    def head_room(self, mode: Mode) -> float | None:
        """Returns the largest head-room of a mode on any device, or None if none is known."""
        by_device = [modes[mode].head_room for modes in self.devices.values() if mode in modes]
        return max((value for value in by_device if value is not None), default=None)


def content_hash(problem: Problem) -> str:
    """Returns the SHA-256 of all that decides a verdict: the rules and the problem's files."""
    digest = hashlib.sha256(f"rules {RULES_VERSION}\n".encode())
    for text in problem.content():
        digest.update(f"{len(text.encode())}\n{text}".encode())
    return digest.hexdigest()


def stored_verdict(problem: Problem) -> AdmissionVerdict | None:
    """Returns the verdict on the present content of a problem, or None."""
    path = problem.folder / FILE if problem.folder else None
    if path is None or not path.is_file():
        return None
    verdict = AdmissionVerdict.model_validate_json(path.read_bytes())
    if verdict.content != content_hash(problem):
        return None
    devices = {name: _current(problem, modes) for name, modes in verdict.devices.items()}
    return verdict.model_copy(update={"devices": devices})


def kernel_digest(problem: Problem, mode: Mode) -> str:
    """Returns the SHA-256 of the kernel of a mode, if it lies outside the problem's folder.

    Such a kernel is no part of the content: only the modes of its language depend on it.
    """
    extra = Task(problem, mode).extra
    text = problem.kernel(extra) if extra else None
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def _current(problem: Problem, modes: dict[Mode, ModeVerdict]) -> dict[Mode, ModeVerdict]:
    """Returns the verdicts that were reached with the present kernel."""
    return {m: found for m, found in modes.items() if found.kernel == kernel_digest(problem, m)}


def store_verdict(problem: Problem, verdict: AdmissionVerdict) -> None:
    """Writes a verdict into the problem's folder, merged with those of other devices and modes.

    Verdicts on other content are dropped. The others keep the version of the protocol that they
    were reached by. A mode that the device cannot try now keeps its verdict. Verdicts on generated
    problems are not stored.
    """
    if problem.folder is None:
        return
    former = stored_verdict(problem)
    if former is not None:
        devices = former.devices | {
            name: former.devices.get(name, {}) | modes for name, modes in verdict.devices.items()
        }
        verdict = verdict.model_copy(update={"devices": dict(sorted(devices.items()))})
    text = verdict.model_dump_json() + "\n"  # one line: a verdict is replaced as a whole
    (problem.folder / FILE).write_text(text, encoding="utf-8")


def status_of(task: Task) -> Status:
    """Returns the status of a task from the stored verdict, or from the source that has it."""
    if (source := source_of(task.id)) is not None:
        return source.status(task.id)
    verdict = stored_verdict(task.problem)
    return Status.UNKNOWN if verdict is None else verdict.status(task.mode)


def head_room_on(task: Task, device: str) -> float | None:
    """Returns the stored head-room of a task on one device, or None if none is known.

    Args:
        task: One of our own tasks; imported ones have no stored head-room.
        device: A name of verdicts, such as `sim:gfx942` or `NVIDIA H200`.
    """
    if source_of(task.id) is not None:
        return None
    verdict = stored_verdict(task.problem)
    of_mode = verdict.devices.get(device, {}).get(task.mode) if verdict else None
    return of_mode.head_room if of_mode else None
