"""The task: a problem in one mode, which fixes the language and what the candidate starts from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernel_gym.tasks.names import KERNEL_FILES, LANGUAGES, Mode
from kernel_gym.tasks.problem import Problem

_START = {Mode.TRITON2TRITON: "triton", Mode.HIP2HIP: "hip"}


@dataclass(frozen=True)
class Task:
    """A problem in one mode."""

    problem: Problem
    mode: Mode

    @property
    def id(self) -> str:
        """`mode/problem`, e.g. `triton2triton/softmax`."""
        return f"{self.mode}/{self.problem.name}"

    @property
    def language(self) -> str:
        """What a candidate is written in: "triton" or "hip"."""
        return LANGUAGES[self.mode]

    @property
    def entry(self) -> str:
        """Name of the function that a candidate exports."""
        return self.problem.entry

    @property
    def kernel_source(self) -> str:
        """Text of the problem's kernel in this task's language, shown to the candidate or not."""
        text = self.problem.kernel(self.language)
        if text is None:
            raise ValueError(f"{self.id}: the problem has no kernel in {self.language!r}")
        return text

    @property
    def baseline(self) -> str:
        """What a candidate is timed against: "triton", "hip" or "torch" (eager)."""
        return _START.get(self.mode, "torch")

    @property
    def baseline_source(self) -> str | None:
        """Text of the baseline kernel; None where the baseline is PyTorch."""
        if self.mode not in _START:
            return None
        return self.kernel_source

    @property
    def start_source(self) -> str | None:
        """Text of the kernel that the candidate starts from; None where it starts from nothing."""
        return self.baseline_source

    @property
    def reference_source(self) -> str:
        """The PyTorch reference as a Python module with one function named like the entry."""
        return self.problem.reference_source()

    def __str__(self) -> str:
        return self.id


def kernel_path(problem: Problem, language: str) -> Path:
    """Where the problem's kernel in "triton" or "hip" is, or would be.

    Raises:
        ValueError: the problem is generated and has no files.
    """
    if problem.folder is None:
        raise ValueError(f"{problem.name}: its kernels are generated; they are in no file")
    return problem.folder / KERNEL_FILES[language]


def modes_of(problem: Problem) -> tuple[Mode, ...]:
    """The modes that exist for a problem: those of each language it has a kernel in."""
    languages = {language for language in KERNEL_FILES if problem.kernel(language) is not None}
    return tuple(m for m in Mode if Task(problem, m).language in languages)
