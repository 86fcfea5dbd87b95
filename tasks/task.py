"""The task: a problem in one mode, which fixes the language and what the candidate starts from."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kernel_gym.tasks.problem import Problem


class Mode(StrEnum):
    """From what to what a candidate goes."""

    TRITON2TRITON = "triton2triton"
    """Optimise a given Triton kernel."""
    TORCH2TRITON = "torch2triton"
    """Write a Triton kernel from the PyTorch reference."""
    INSTRUCTION2TRITON = "instruction2triton"
    """Write a Triton kernel from words alone."""
    HIP2HIP = "hip2hip"
    """Optimise a given HIP kernel."""
    TORCH2HIP = "torch2hip"
    """Write a HIP kernel from the PyTorch reference."""


_START = {Mode.TRITON2TRITON: "triton", Mode.HIP2HIP: "hip"}
_FILES = {"triton": "baseline.py", "hip": "baseline.hip"}


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
        return "hip" if self.mode in (Mode.HIP2HIP, Mode.TORCH2HIP) else "triton"

    @property
    def entry(self) -> str:
        """Name of the function that a candidate exports."""
        return self.problem.name

    @property
    def baseline(self) -> str:
        """What a candidate is timed against: "triton", "hip" or "torch" (eager)."""
        return _START.get(self.mode, "torch")

    @property
    def baseline_source(self) -> str | None:
        """Text of the baseline kernel; None where the baseline is PyTorch."""
        if self.mode not in _START:
            return None
        return kernel_path(self.problem, self.language).read_text(encoding="utf-8")

    @property
    def start_source(self) -> str | None:
        """Text of the kernel that the candidate starts from; None where it starts from nothing."""
        return self.baseline_source

    @property
    def reference_source(self) -> str:
        """The PyTorch reference as a Python module with one function named like the entry."""
        return reference_source(self.problem)

    def __str__(self) -> str:
        return self.id


def problem_folder(problem: Problem) -> Path:
    """The folder that holds the problem's files."""
    file = sys.modules[type(problem).__module__].__file__
    if file is None:
        raise ValueError(f"{problem.name}: its class was not loaded from a file")
    return Path(file).parent


def kernel_path(problem: Problem, language: str) -> Path:
    """Where the problem's kernel in "triton" or "hip" is, or would be."""
    return problem_folder(problem) / _FILES[language]


def modes_of(problem: Problem) -> tuple[Mode, ...]:
    """The modes that exist for a problem: those of each language it has a kernel in."""
    languages = {lang for lang in _FILES if kernel_path(problem, lang).is_file()}
    return tuple(m for m in Mode if Task(problem, m).language in languages)


def reference_source(problem: Problem) -> str:
    """Text of `problem.reference` as a free-standing function; it uses torch and nothing else."""
    text = textwrap.dedent(inspect.getsource(type(problem).reference))
    text = re.sub(r"def reference\(\s*self,\s*", f"def {problem.name}(", text, count=1)
    functional = "import torch.nn.functional as F\n" if "F." in text else ""
    return f"import torch\n{functional}\n\n{text}"
