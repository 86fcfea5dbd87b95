"""A task: a problem in one mode. The mode fixes the language and the start of the candidate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernel_gym.tasks.names import EXTRA_OF_MODE, FROM_TORCH, KERNEL_FILES, LANGUAGES, Mode
from kernel_gym.tasks.problem import Problem


@dataclass(frozen=True)
class Task:
    """A problem in one mode."""

    problem: Problem
    mode: Mode

    @property
    def id(self) -> str:
        """The name `mode/problem`, such as `triton2triton/softmax`; of an imported one its own."""
        if self.problem.suite:
            return self.problem.name
        return f"{self.mode}/{self.problem.name}"

    @property
    def language(self) -> str:
        """The form of a candidate: "triton", a Python module, or "hip"."""
        return LANGUAGES[self.mode]

    @property
    def extra(self) -> str:
        """The package of `embedded.EXTRAS` that a candidate must be written with, or empty."""
        return EXTRA_OF_MODE.get(self.mode, "")

    @property
    def written_in(self) -> str:
        """The language of the task's kernel: "triton", "hip" or `extra`."""
        return self.mode.written_in

    @property
    def entry(self) -> str:
        """The name of the function that a candidate exports."""
        return self.problem.entry

    @property
    def kernel_source(self) -> str:
        """The text of the problem's kernel in this language, also if no prompt shows it."""
        text = self.problem.kernel(self.written_in)
        if text is None:
            raise ValueError(f"{self.id}: the problem has no kernel in {self.written_in!r}")
        return text

    @property
    def baseline(self) -> str:
        """The baseline that a candidate is timed against: `written_in`, or "torch" (eager)."""
        if self.mode.has_start_kernel or not self.problem.fair_reference:
            return self.written_in
        return "torch"

    @property
    def baseline_source(self) -> str | None:
        """The text of the baseline kernel, or None if the baseline is PyTorch.

        Of an imported task it is the suite's own code, also where that is PyTorch.
        """
        if self.problem.recorded:
            return self.problem.implementation
        return None if self.baseline == "torch" else self.kernel_source

    @property
    def start_source(self) -> str | None:
        """The text of the kernel that the candidate starts from, or None."""
        return self.kernel_source if self.mode.has_start_kernel else None

    @property
    def gluon_source(self) -> str | None:
        """The start kernel in Gluon, or None. Only tasks that start from Triton have one."""
        return self.problem.gluon_kernel if self.mode is Mode.TRITON2TRITON else None

    def embedded_source(self, language: str) -> str | None:
        """A start kernel in "flydsl" or "tilelang", or None, as `gluon_source` is in Gluon."""
        return self.problem.kernel(language) if self.mode is Mode.TRITON2TRITON else None

    @property
    def reference_source(self) -> str:
        """The PyTorch reference as a Python module with one function, named like the entry."""
        return self.problem.reference_source()

    def __str__(self) -> str:
        return self.id


def kernel_path(problem: Problem, language: str) -> Path:
    """Returns the path of the problem's kernel in "triton" or "hip". The file may not exist.

    Raises:
        ValueError: The problem is generated and has no files.
    """
    if problem.folder is None:
        raise ValueError(f"{problem.name}: its kernels are generated; they are in no file")
    return problem.folder / KERNEL_FILES[language]


def modes_of(problem: Problem) -> tuple[Mode, ...]:
    """Returns the modes of a problem: those of each language in which it has a kernel.

    A problem that needs no start kernel has the modes that start from PyTorch in any case.
    """
    written = dict.fromkeys((*KERNEL_FILES, *EXTRA_OF_MODE.values()))
    languages = {language for language in written if problem.kernel(language) is not None}
    startless = FROM_TORCH if problem.startless else ()
    return tuple(m for m in Mode if m in startless or Task(problem, m).written_in in languages)
