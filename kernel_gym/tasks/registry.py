"""Looks up problems and tasks by name.

Problems come from the package, from the folders in the environment variable
`KERNEL_GYM_TASKS_PATH`, which worker processes inherit, from seeds (`generated:seed=1,depth=3`),
and from registered sources (`kernel_gym/tasks/sources.py`), such as imported suites.
"""

from __future__ import annotations

import os
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path

import kernel_gym.tasks.problems as package
from kernel_gym.errors import InputError
from kernel_gym.tasks.generated.problem import CACHED, generated_problem
from kernel_gym.tasks.names import (
    MODELS,
    PREFIX,
    PROBLEMS,
    Mode,
    UnknownName,
    imports_hint,
    is_problem,
    names_in,
    problem_folders,
    problem_names,
    task_ids,
)
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.problems import TASKS_PATH
from kernel_gym.tasks.sources import source_of
from kernel_gym.tasks.task import Task, modes_of
from kernel_gym.tasks.tuning import Tuning

_ADMISSION = "kernel_gym.admission.generated"
"""The module that decides which generated problems are tasks."""


class TasksPathError(InputError, ValueError):
    """A folder of problems cannot be used. The message names the folder and the reason."""


def add_tasks_path(folder: str | Path) -> None:
    """Registers the problems of a folder, for this process and processes that it starts later.

    It appends the folder to the environment variable `KERNEL_GYM_TASKS_PATH`.

    Args:
        folder: It holds problem folders, as `tasks/problems` does.

    Raises:
        TasksPathError: There is no problem in it, or the name of one is already used.
    """
    path = Path(folder).resolve()
    names = names_in(path)
    if not names:
        raise TasksPathError(f"{folder}: found no <name>/problem.py, expected a folder of problems")
    known = os.environ.get(TASKS_PATH, "").split(os.pathsep)
    if str(path) in known:
        return
    taken = sorted(names & set(problem_names()))
    if taken:
        raise TasksPathError(f"{folder}: {taken[0]!r} is the name of another problem; rename it")
    os.environ[TASKS_PATH] = os.pathsep.join(filter(None, [*known, str(path)]))


def get_problem(name: str) -> Problem:
    """Returns a problem by name. It is imported on first use.

    Raises:
        UnknownName: There is none. The message lists similar names, or the form of generated ones.
    """
    if name.startswith(PREFIX):
        try:
            return generated_problem(name)
        except ValueError as error:
            raise UnknownName("problem", name, (), str(error)) from error
    if (source := source_of(name)) is not None:
        return source.problem(name)
    if not is_problem(name):
        raise UnknownName("problem", name, problem_names())
    return _import_problem(name, problem_folders())


@cache
def _import_problem(name: str, folders: tuple[Path, ...]) -> Problem:
    package.__path__[:] = map(str, folders)  # problems outside the package import like those in it
    module = import_module(f"{package.__name__}.{name}.problem")
    problem = module.PROBLEM
    if problem.name != name:
        raise ValueError(
            f"problems/{name}/problem.py: name: found {problem.name!r}, expected {name!r}"
        )
    return problem


def tunable_names() -> list[str]:
    """Returns the names of problems with a schedule space, sorted, without importing them."""
    return sorted(path.parent.name for path in PROBLEMS.glob("*/tune.py"))


def get_tuning(problem_name: str) -> Tuning:
    """Returns the schedule space of a problem.

    Raises:
        UnknownName: The problem has none. The message lists the problems that have one.
    """
    if problem_name not in tunable_names():
        raise UnknownName("schedule space", problem_name, tunable_names())
    return import_module(f"{package.__name__}.{problem_name}.tune").TUNING


def get_task(task_id: str) -> Task:
    """Returns a task by id, such as `triton2triton/softmax`.

    The name of a generated problem without a mode means the mode `triton2triton`. A part of a model
    has a second name, such as `model/llama-decoder-layer`.

    Raises:
        UnknownName: There is no such task, or admission refuses the generated problem. The message
            lists similar ids, or the reason.
    """
    task_id = MODELS.get(task_id, task_id)
    if task_id.startswith(PREFIX):
        task_id = f"{Mode.TRITON2TRITON}/{task_id}"
    if (source := source_of(task_id)) is not None:
        return source.task(task_id)
    return _find_task(task_id, problem_folders())


@lru_cache(maxsize=CACHED)
def _find_task(task_id: str, folders: tuple[Path, ...]) -> Task:
    """Returns a task. A rollout asks for the same tasks with every submission."""
    mode, _, name = task_id.partition("/")
    if mode not in set(Mode) or not (name.startswith(PREFIX) or is_problem(name)):
        raise UnknownName("task", task_id, (*task_ids(), *MODELS), imports_hint(task_id))
    problem = get_problem(name)
    if name.startswith(PREFIX):
        _require_admitted(task_id, name)
    tasks = {m: Task(problem, m) for m in modes_of(problem)}
    if mode not in tasks:
        known = task_ids() if problem.folder else [task.id for task in tasks.values()]
        raise UnknownName("task", task_id, known)
    return tasks[Mode(mode)]


def _require_admitted(task_id: str, name: str) -> None:
    """Raises UnknownName if admission refuses a generated problem.

    Admission lies above this room and is looked up when it is needed.
    """
    reasons = import_module(_ADMISSION).refusals(name)
    if reasons:
        hint = f"admission refuses it: {reasons[0]}; choose another seed"
        raise UnknownName("task", task_id, (), hint)
