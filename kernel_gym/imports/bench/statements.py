"""The statement of a task: answers of its own code, and how two of them are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from kernel_gym.devices.base import Device
from kernel_gym.imports.recorded.problem import RecordedProblem
from kernel_gym.imports.recorded.stated import StatedWorkload
from kernel_gym.judge.correctness import same_twice
from kernel_gym.tasks.workload import Split

ON_GPU = (
    "reads outside of tensors are not seen on a GPU",
    "no audits: races, lost writes and undefined reads are not looked for",
    "a launch that takes too long ends the recording: its first workgroups are not seen",
)
"""Notes on all that an import on a GPU leaves out, since only a simulator knows it."""


@dataclass
class TaskStatement:
    """The workloads of a task, and what was seen of its own code."""

    stated: list[StatedWorkload] = field(default_factory=list)
    flags: dict[str, str] = field(default_factory=dict)
    """Evidence by flag: what a control has found."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class StatingTrial:
    """An answer of the suite's own code, with its processor seconds."""

    outputs: tuple[torch.Tensor, ...]
    stated: StatedWorkload
    seconds: float


def notes_on(
    device: Device, problem: RecordedProblem, stated: Sequence[StatedWorkload], twins: int
) -> list[str]:
    """Names the rules that cannot hold for a task, and what was changed for it.

    Args:
        device: The device.
        problem: The problem.
        stated: Its workloads.
        twins: How many of them are smaller than the recorded ones.
    """
    notes = [f"{twins} workloads are smaller twins"] if twins else []
    if not device.description.audits:
        notes += ON_GPU
    if problem.margin:
        notes.append("its own code accesses memory just outside of tensors")
    if not any(one.split is Split.UNSEEN for one in stated):
        notes.append("no unseen")
    return notes


def has_no_nan(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether no element of an answer is NaN."""
    floating = [t for t in outputs if t.dtype.is_floating_point]
    return not any(bool(torch.isnan(t.float()).any()) for t in floating)


def all_finite(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether all elements of an answer are finite."""
    floating = [t for t in outputs if t.dtype.is_floating_point]
    return all(bool(torch.isfinite(t.float()).all()) for t in floating)


def same_answer(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    """Whether two answers to the same values agree as the judge asks of two calls."""
    if [(t.shape, t.dtype) for t in one] != [(t.shape, t.dtype) for t in other]:
        return False
    return all(same_twice(a, b, a.double(), a) for a, b in zip(one, other, strict=True))


def equal_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have the same bytes."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    first, second = (t.contiguous().reshape(-1).view(torch.uint8) for t in (one, other))
    return torch.equal(first, second) if one.numel() else True
