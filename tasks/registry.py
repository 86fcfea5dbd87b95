"""Finds problems, tasks and suites by name, and says what is near when a name is unknown."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.task import Mode, Task, modes_of
from kernel_gym.tasks.tuning import Tuning

_HERE = Path(__file__).parent
_PROBLEMS = _HERE / "problems"
_SUITES = _HERE / "suites"


class UnknownName(KeyError):
    """No problem, task or suite has this name; the message lists those near to it."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        """States what was looked for and which known names resemble it."""
        names = sorted(known)
        self.what, self.name = what, name
        self.near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(self.near)}?" if self.near else f"known: {names}"
        self.message = f"unknown {what} {name!r}; {hint}"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (UnknownName, (self.what, self.name, self.near))


class SuiteError(ValueError):
    """A suite file is malformed: which file and key, what was found and what was expected."""


@dataclass(frozen=True)
class Suite:
    """A named list of tasks."""

    name: str
    summary: str
    tasks: tuple[Task, ...]


class _SuiteFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1)
    summary: str = Field(min_length=1)
    tasks: list[str] = Field(min_length=1)


def problem_names() -> list[str]:
    """Every problem, sorted; imports none of them."""
    return sorted(path.parent.name for path in _PROBLEMS.glob("*/problem.py"))


@cache
def get_problem(name: str) -> Problem:
    """The problem of this name, imported when first asked for."""
    if name not in problem_names():
        raise UnknownName("problem", name, problem_names())
    module = import_module(f"kernel_gym.tasks.problems.{name}.problem")
    problem = module.PROBLEM
    if problem.name != name:
        raise ValueError(
            f"problems/{name}/problem.py: name: found {problem.name!r}, expected {name!r}"
        )
    return problem


def tunable_names() -> list[str]:
    """The problems with a schedule space, sorted; imports none of them."""
    return sorted(path.parent.name for path in _PROBLEMS.glob("*/tune.py"))


def get_tuning(problem_name: str) -> Tuning:
    """The schedule space of a problem.

    Raises:
        UnknownName: The problem has none; the message lists those that have.
    """
    if problem_name not in tunable_names():
        raise UnknownName("schedule space", problem_name, tunable_names())
    return import_module(f"kernel_gym.tasks.problems.{problem_name}.tune").TUNING


@cache
def task_ids() -> tuple[str, ...]:
    """Every task id, by problem and then mode."""
    return tuple(
        Task(problem, mode).id
        for problem in map(get_problem, problem_names())
        for mode in modes_of(problem)
    )


def get_task(task_id: str) -> Task:
    """The task of this id, e.g. `triton2triton/softmax`."""
    mode, _, name = task_id.partition("/")
    if mode not in {m.value for m in Mode} or name not in problem_names():
        raise UnknownName("task", task_id, task_ids())
    problem = get_problem(name)
    if Mode(mode) not in modes_of(problem):
        raise UnknownName("task", task_id, task_ids())
    return Task(problem, Mode(mode))


def suites() -> list[str]:
    """The names of the suites that come with the package, sorted."""
    return sorted(path.stem for path in _SUITES.glob("*.toml"))


def load_suite(name_or_path: str | Path) -> Suite:
    """A suite by name, or from a TOML file by path (anything that ends in `.toml`)."""
    text = str(name_or_path)
    if text.endswith(".toml"):
        return _read_suite(Path(text))
    if text not in suites():
        raise UnknownName("suite", text, suites())
    return _read_suite(_SUITES / f"{text}.toml")


def _read_suite(path: Path) -> Suite:
    try:
        data = _SuiteFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"{path}: found invalid TOML ({error}), expected a suite file") from error
    except ValidationError as error:
        raise SuiteError(_first_problem(path, error)) from error
    return Suite(data.name, data.summary, _tasks_of(path, data.tasks))


def _first_problem(path: Path, error: ValidationError) -> str:
    """File, key, found, expected: of the first thing that pydantic complains about."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f"{path}: key {key!r}: found nothing, expected {key!r} to be set"
    if first["type"] == "extra_forbidden":
        known = ", ".join(_SuiteFile.model_fields)
        return f"{path}: key {key!r}: found an unknown key, expected one of {known}"
    return f"{path}: key {key!r}: found {first['input']!r}, expected: {first['msg']}"


def _tasks_of(path: Path, ids: list[str]) -> tuple[Task, ...]:
    tasks = []
    for i, task_id in enumerate(ids):
        if task_id in ids[:i]:
            raise SuiteError(f"{path}: key 'tasks.{i}': found {task_id!r} twice, expected it once")
        try:
            tasks.append(get_task(task_id))
        except UnknownName as error:
            raise SuiteError(
                f"{path}: key 'tasks.{i}': found {task_id!r}, expected a task id; {error}"
            ) from error
    return tuple(tasks)
