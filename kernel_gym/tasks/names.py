"""Names of problems, tasks and suites, from files alone.

The command line looks here first: importing a problem loads PyTorch, which takes seconds, and a
typing error is to be answered at once.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType

from kernel_gym.errors import InputError
from kernel_gym.tasks.problems import TASKS_PATH

PREFIX = "generated:"
"""Begins the name of a problem that is made from a seed."""
KERNEL_FILES = MappingProxyType({"triton": "baseline.py", "hip": "baseline.hip"})
"""The file of a problem's kernel, by language."""
PROBLEMS = Path(__file__).parent / "problems"
SUITES = Path(__file__).parent / "suites"
RULES = SUITES / "rules.toml"
"""The package's suites by rule, in one file."""


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


LANGUAGES = {mode: "hip" if mode in (Mode.HIP2HIP, Mode.TORCH2HIP) else "triton" for mode in Mode}
"""What a candidate is written in."""


class UnknownName(InputError, KeyError):
    """No problem, task or suite has this name; the message lists those near to it."""

    def __init__(self, what: str, name: str, known: Iterable[str], hint: str = "") -> None:
        """States what was looked for and which known names resemble it, or another hint."""
        names = list(known)
        self.what, self.name, self.hint = what, name, hint
        self.near = near_names(name, names)
        near = f"did you mean {' or '.join(self.near)}?" if self.near else f"known: {sorted(names)}"
        self.message = f"unknown {what} {name!r}; {hint or near}"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (UnknownName, (self.what, self.name, self.near, self.hint))


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known names that resemble a name; those that it is the last part of come first.

    Example:
        >>> near_names("softmax", ["hip2hip/softmax", "hip2hip/log_softmax"])
        ['hip2hip/softmax']
    """
    names = list(known)
    if "/" not in name and (tasks := [other for other in names if other.endswith(f"/{name}")]):
        return tasks[:3]
    return difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.5)


def problem_folders() -> tuple[Path, ...]:
    """The folders that hold problem folders, the package's own first."""
    outside = os.environ.get(TASKS_PATH, "").split(os.pathsep)
    return (PROBLEMS, *(Path(folder) for folder in outside if folder))


def names_in(folder: Path) -> set[str]:
    """The names of the problems in a folder."""
    return {path.parent.name for path in folder.glob("*/problem.py")}


def problem_names() -> list[str]:
    """Every problem that is in a folder, sorted; imports none of them."""
    return sorted(set().union(*map(names_in, problem_folders())))


def is_problem(name: str) -> bool:
    """Whether a folder of that name holds a problem; looks at no other folder."""
    paths = (folder / name / "problem.py" for folder in problem_folders())
    return name.isidentifier() and any(path.is_file() for path in paths)


def task_ids() -> tuple[str, ...]:
    """Every task id of a problem in a folder, by problem and then mode."""
    return _task_ids(problem_folders(), tuple(problem_names()))


@cache
def _task_ids(folders: tuple[Path, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    homes = {name: folder / name for folder in reversed(folders) for name in names_in(folder)}
    return tuple(
        f"{mode}/{name}"
        for name in names
        for mode in Mode
        if (homes[name] / KERNEL_FILES[LANGUAGES[mode]]).is_file()
    )


def is_task(name: str) -> bool:
    """Whether a name is meant as a task's: `mode/problem`, or that of a generated problem."""
    mode, slash, _ = name.partition("/")
    return name.startswith(PREFIX) or bool(slash and mode in set(Mode))


def require_task(name: str) -> None:
    """Does nothing when there is a task of that name, as far as its files say.

    Raises:
        UnknownName: There is none; the message has near matches.
    """
    generated = name.partition("/")[2].startswith(PREFIX) or name.startswith(PREFIX)
    if not generated and name not in task_ids():
        raise UnknownName("task", name, task_ids())


def suite_names() -> list[str]:
    """The names of the suites that come with the package, sorted."""
    files = [path.stem for path in SUITES.glob("*.toml") if path != RULES]
    rules = tomllib.loads(RULES.read_text(encoding="utf-8"))["suite"]
    return sorted([*files, *(entry["name"] for entry in rules)])


def require_suite(name: str) -> None:
    """Does nothing when there is a suite or task of that name, or when it is that of a file.

    Raises:
        UnknownName: There is none; the message has near matches.
    """
    if name.endswith(".toml"):
        return
    if is_task(name):
        require_task(name)
    elif name not in suite_names():
        known = suite_names() if not re.search(r"[/0-9]", name) else (*suite_names(), *task_ids())
        raise UnknownName("suite", name, known)
