"""Suites: named lists of tasks, or rules that select tasks.

A suite is a TOML file that states `tasks`, a list of ids, or `where`, a rule:

    name = "small-losses"
    summary = "Losses of the first two levels."
    where = { category = ["Loss"], level = [1, 2] }

A rule selects among the admitted tasks of problems in folders, so its suite grows with them.

A task is admitted if one device has head-room for it. A suite that is made for one device says so
by `head_room_on = "sim:gfx942"`, in a rule or beside a list: a rule then leaves out tasks that no
kernel can win there, and a list that names one is refused.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kernel_gym.errors import InputError
from kernel_gym.tasks.families import operator_family
from kernel_gym.tasks.names import (
    RULES,
    SUITES,
    UnknownName,
    is_task,
    require_suite,
    suite_names,
    task_ids,
)
from kernel_gym.tasks.registry import get_task
from kernel_gym.tasks.sources import source_of_suite
from kernel_gym.tasks.status import Status
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.verdicts import HEAD_ROOM, head_room_on, status_of


class SuiteError(InputError, ValueError):
    """A suite file is malformed. The message names file, key, present and expected value."""


@dataclass(frozen=True)
class Suite:
    """A named list of tasks."""

    name: str
    summary: str
    tasks: tuple[Task, ...]


class Rule(BaseModel):
    """Conditions on a task. Each non-empty field must match one of its values."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    category: tuple[str, ...] = ()
    level: tuple[int, ...] = ()
    mode: tuple[str, ...] = ()
    family: tuple[str, ...] = ()
    """Architecture families, which are tags of problems."""
    operator: tuple[str, ...] = ()
    """Operator families, see `kernel_gym/tasks/families.py`."""
    status: tuple[str, ...] = (Status.ADMITTED,)
    """Admission status; empty for any."""
    suite: tuple[str, ...] = ()
    """Imported suites to select from; empty for our own tasks."""
    head_room_on: str = ""
    """A device on which the stored head-room exceeds `HEAD_ROOM`; empty for any. Imported tasks
    have none stored."""

    def chooses(self, task: Task) -> bool:
        """Whether the rule selects a task."""
        problem = task.problem
        return (
            problem.suite in (self.suite or ("",))
            and _one_of(self.category, problem.category)
            and _one_of(self.level, problem.level)
            and _one_of(self.mode, task.mode)
            and (not self.family or bool(set(self.family) & set(problem.tags)))
            and (not self.operator or operator_family(problem) in self.operator)
            and (not self.status or status_of(task) in self.status)
            and (not self.head_room_on or (head_room_on(task, self.head_room_on) or 0) > HEAD_ROOM)
        )


def _one_of(wanted: tuple[object, ...], value: object) -> bool:
    return not wanted or value in wanted


class _SuiteFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1)
    summary: str = Field(min_length=1)
    tasks: list[str] = Field(default=[], min_length=1)
    where: Rule | None = None
    head_room_on: str = ""
    """A device on which no task of the list may be without head-room."""

    @model_validator(mode="after")
    def _tasks_or_rule(self) -> Self:
        if not self.tasks and self.where is None:
            raise ValueError("key 'tasks': found nothing, expected 'tasks' or 'where' to be set")
        if self.tasks and self.where is not None:
            raise ValueError("key 'where': found it beside 'tasks', expected one of them")
        if self.where is not None and self.head_room_on:
            raise ValueError("key 'head_room_on': found it beside 'where', expected it inside")
        return self


def chosen_tasks(rule: Rule) -> tuple[Task, ...]:
    """Returns the tasks that a rule selects, by problem and then mode."""
    names = [name for suite in rule.suite for name in usable_ids(suite)] or task_ids()
    return tuple(task for task in map(get_task, names) if rule.chooses(task))


def usable_ids(suite: str) -> list[str]:
    """Returns the tasks of an imported suite that some device supports."""
    source = source_of_suite(suite)
    return source.usable_ids(suite) if source else []


def suites() -> list[str]:
    """Returns the names of the suites in the package, sorted."""
    return suite_names()


def suite_rule(name: str) -> Rule | None:
    """Returns the rule of a suite in the package, or None if the suite is a list."""
    entry = _rules().get(name)
    return entry.where if entry else None


def load_suite(name_or_path: str | Path) -> Suite:
    """Loads a suite: by name, from a TOML file (a path that ends in `.toml`), or of one task.

    Raises:
        UnknownName: There is no such suite or task. The message lists similar names.
        SuiteError: The file cannot be read or is malformed, or no task fits its rule.
    """
    text = str(name_or_path)
    require_suite(text)
    if is_task(text):
        task = get_task(text)
        return Suite(task.id, task.problem.summary, (task,))
    if text.endswith(".toml"):
        return _resolve(Path(text), _parse(Path(text), _load(Path(text))))
    if (source := source_of_suite(text)) is not None and (path := source.suite_path(text)):
        rule = Rule(suite=(text,))
        return _resolve(path, _SuiteFile(name=text, summary=text, where=rule))
    if text in _rules():
        return _resolve(RULES, _rules()[text])
    return load_suite(SUITES / f"{text}.toml")


@cache
def _rules() -> dict[str, _SuiteFile]:
    entries = (_parse(RULES, entry) for entry in _load(RULES)["suite"])
    return {entry.name: entry for entry in entries}


def _load(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SuiteError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path}: found no UTF-8, expected a suite file") from error
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"{path}: found invalid TOML ({error}), expected a suite file") from error


def _parse(path: Path, entry: dict[str, object]) -> _SuiteFile:
    try:
        return _SuiteFile.model_validate_json(json.dumps(entry))
    except ValidationError as error:
        raise SuiteError(_first_problem(path, error)) from error


def _resolve(path: Path, entry: _SuiteFile) -> Suite:
    if entry.where is None:
        listed = _tasks_of(path, entry.tasks)
        _require_head_room(path, listed, entry.head_room_on)
        return Suite(entry.name, entry.summary, listed)
    tasks = chosen_tasks(entry.where)
    if not tasks:
        asked = entry.where.model_dump(exclude_unset=True)
        raise SuiteError(f"{path}: suite {entry.name!r}: no admitted task fits {asked}")
    return Suite(entry.name, entry.summary, tasks)


def _require_head_room(path: Path, tasks: tuple[Task, ...], device: str) -> None:
    """Refuses a task whose head-room is known, and too small on the device of its suite."""
    for i, task in enumerate(tasks if device else ()):
        room = head_room_on(task, device)
        if room is not None and room <= HEAD_ROOM:
            raise SuiteError(
                f"{path}: key 'tasks.{i}': found {task.id!r} with a head-room of {room:.2f} on "
                f"{device}, expected more than {HEAD_ROOM}"
            )


def _first_problem(path: Path, error: ValidationError) -> str:
    """Returns file, key, present and expected value of the first error that pydantic reports."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f"{path}: key {key!r}: found nothing, expected {key!r} to be set"
    if first["type"] == "extra_forbidden":
        fields = Rule.model_fields if "where" in first["loc"] else _SuiteFile.model_fields
        return f"{path}: key {key!r}: found an unknown key, expected one of {', '.join(fields)}"
    if first["type"] == "value_error":
        return f"{path}: {first['ctx']['error']}"
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
