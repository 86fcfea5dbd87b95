"""What was found of a problem when it was admitted, kept beside it as `admission.json`.

A verdict belongs to the content that it was reached on: when a file of the problem changes, it is
as if there were none. `kernel-gym admit` writes verdicts; suites list what they admit.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.task import Mode, Task

FILE = "admission.json"
RULES_VERSION = "1"
"""Raised whenever rules or controls change, so that every problem is admitted anew."""
HEAD_ROOM = 1.25
"""Least time of the baseline over that of the roofline: below, a task is saturated."""
FAILS = "fails"
"""A control that is caught, as it must be."""


class Status(StrEnum):
    """Whether a task counts."""

    ADMITTED = "admitted"
    SATURATED = "saturated"
    """Nothing left to gain over its baseline on any device that was tried."""
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """No verdict on the content as it is now."""


class ModeVerdict(BaseModel):
    """One mode on one device."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    refused: tuple[str, ...] = ()
    """Why it is refused; empty when it is not."""
    head_room: float | None = None
    """Geometric mean of baseline time over roofline time, launch included, on train workloads."""


class Verdict(BaseModel):
    """One problem: what became of the controls, and of its modes by device."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: str
    protocol: str
    rules: str = RULES_VERSION
    controls: dict[str, str]
    """By control, `fails`, or why it does not apply, or what of it passes."""
    devices: dict[str, dict[Mode, ModeVerdict]]

    def status(self, mode: Mode) -> Status:
        """Refused if any device refuses it, saturated if it is so on all."""
        found = [modes[mode] for modes in self.devices.values() if mode in modes]
        if not found:
            return Status.UNKNOWN
        if any(verdict.refused for verdict in found):
            return Status.REFUSED
        free = any((verdict.head_room or 0) > HEAD_ROOM for verdict in found)
        return Status.ADMITTED if free else Status.SATURATED

    def head_room(self, mode: Mode) -> float | None:
        """The largest on any device."""
        found = [modes[mode].head_room for modes in self.devices.values() if mode in modes]
        return max((value for value in found if value is not None), default=None)


def content_hash(problem: Problem) -> str:
    """SHA-256 of everything that decides a verdict: statement and kernels, and the rules."""
    digest = hashlib.sha256(f"rules {RULES_VERSION}\n".encode())
    for text in problem.content():
        digest.update(f"{len(text.encode())}\n{text}".encode())
    return digest.hexdigest()


def stored_verdict(problem: Problem) -> Verdict | None:
    """The verdict on the problem as it is now; None where there is none."""
    path = problem.folder / FILE if problem.folder else None
    if path is None or not path.is_file():
        return None
    verdict = Verdict.model_validate_json(path.read_bytes())
    return verdict if verdict.content == content_hash(problem) else None


def store_verdict(problem: Problem, verdict: Verdict) -> None:
    """Keeps a verdict beside its problem, with those of other devices on the same content.

    That on a generated problem is kept nowhere.
    """
    if problem.folder is None:
        return
    former = stored_verdict(problem)
    if former is not None and former.protocol == verdict.protocol:
        devices = former.devices | verdict.devices
        verdict = verdict.model_copy(update={"devices": dict(sorted(devices.items()))})
    text = verdict.model_dump_json(indent=2) + "\n"
    (problem.folder / FILE).write_text(text, encoding="utf-8")


def status_of(task: Task) -> Status:
    """What the stored verdict says of a task."""
    verdict = stored_verdict(task.problem)
    return Status.UNKNOWN if verdict is None else verdict.status(task.mode)
