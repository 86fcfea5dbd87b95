"""Finds problems and tasks by name, and says what is near when a name is unknown.

Problems come with the package, from the folders named in the variable `KERNEL_GYM_TASKS_PATH`,
which worker processes inherit, and from a seed: `generated:seed=1,depth=3`.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from pathlib import Path

import kernel_gym.tasks.problems as package
from kernel_gym.errors import InputError
from kernel_gym.tasks.generated.problem import generated_problem
from kernel_gym.tasks.names import (
    PREFIX,
    PROBLEMS,
    Mode,
    UnknownName,
    is_problem,
    names_in,
    problem_folders,
    problem_names,
    task_ids,
)
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.problems import TASKS_PATH
from kernel_gym.tasks.task import Task, modes_of
from kernel_gym.tasks.tuning import Tuning


class TasksPathError(InputError, ValueError):
    """A folder of problems cannot be used: which, and why."""


def add_tasks_path(folder: str | Path) -> None:
    """Registers the problems of a folder, for this process and those that it starts.

    Args:
        folder: Holds problem folders, as `tasks/problems` does.

    Raises:
        TasksPathError: There is no problem in it, or one of a name that is taken.
    """
    path = Path(folder).resolve()
    found = names_in(path)
    if not found:
        raise TasksPathError(f"{folder}: found no <name>/problem.py, expected a folder of problems")
    known = os.environ.get(TASKS_PATH, "").split(os.pathsep)
    if str(path) in known:
        return
    taken = sorted(found & set(problem_names()))
    if taken:
        raise TasksPathError(f"{folder}: {taken[0]!r} is the name of another problem; rename it")
    os.environ[TASKS_PATH] = os.pathsep.join(filter(None, [*known, str(path)]))


def get_problem(name: str) -> Problem:
    """The problem of this name, imported when first asked for.

    Raises:
        UnknownName: There is none; the message lists near ones, or says how one is generated.
    """
    if name.startswith(PREFIX):
        try:
            return generated_problem(name)
        except ValueError as error:
            raise UnknownName("problem", name, (), str(error)) from error
    if not is_problem(name):
        raise UnknownName("problem", name, problem_names())
    return _import_problem(name, problem_folders())


@cache
def _import_problem(name: str, folders: tuple[Path, ...]) -> Problem:
    package.__path__[:] = map(str, folders)  # so that a problem outside imports like one inside
    module = import_module(f"{package.__name__}.{name}.problem")
    problem = module.PROBLEM
    if problem.name != name:
        raise ValueError(
            f"problems/{name}/problem.py: name: found {problem.name!r}, expected {name!r}"
        )
    return problem


def tunable_names() -> list[str]:
    """The problems with a schedule space, sorted; imports none of them."""
    return sorted(path.parent.name for path in PROBLEMS.glob("*/tune.py"))


def get_tuning(problem_name: str) -> Tuning:
    """The schedule space of a problem.

    Raises:
        UnknownName: The problem has none; the message lists those that have.
    """
    if problem_name not in tunable_names():
        raise UnknownName("schedule space", problem_name, tunable_names())
    return import_module(f"{package.__name__}.{problem_name}.tune").TUNING


def get_task(task_id: str) -> Task:
    """The task of this id, e.g. `triton2triton/softmax`.

    A generated problem alone, `generated:seed=1,depth=3`, stands for it in `triton2triton`.
    """
    if task_id.startswith(PREFIX):
        task_id = f"{Mode.TRITON2TRITON}/{task_id}"
    return _find_task(task_id, problem_folders())


@cache
def _find_task(task_id: str, folders: tuple[Path, ...]) -> Task:
    """The task, looked for once: a rollout asks for the same ones with every submission."""
    mode, _, name = task_id.partition("/")
    if mode not in {m.value for m in Mode}:
        raise UnknownName("task", task_id, task_ids())
    if not name.startswith(PREFIX) and not is_problem(name):
        raise UnknownName("task", task_id, task_ids())
    problem = get_problem(name)
    known = [Task(problem, m).id for m in modes_of(problem)]
    if task_id not in known and Task(problem, Mode(mode)).id not in known:
        raise UnknownName("task", task_id, task_ids() if problem.folder else known)
    return Task(problem, Mode(mode))
