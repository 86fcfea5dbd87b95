"""Sources of tasks beyond the package's own problems, such as the suites that others wrote.

A package names its source in the entry-point group `kernel_gym.task_sources`:

    [project.entry-points."kernel_gym.task_sources"]
    imports = "kernel_gym.imports.source:ImportedTasks"

The registry asks each source for names that it does not know itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_gym.extras import points_of

if TYPE_CHECKING:
    from kernel_gym.tasks.problem import Problem
    from kernel_gym.tasks.status import Status
    from kernel_gym.tasks.task import Task

GROUP = "kernel_gym.task_sources"
"""The group of entry points that name sources."""


class TaskSource(ABC):
    """A place that tasks come from."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether a name has the form of this source's names. The task may not exist."""

    @abstractmethod
    def task(self, name: str) -> Task:
        """Returns a task.

        Raises:
            UnknownName: There is none of that name. The message lists similar names.
            InputError: It cannot be used; the message has the reason.
        """

    @abstractmethod
    def problem(self, name: str) -> Problem:
        """Returns the problem of a task; raises as `task` does."""

    @abstractmethod
    def status(self, name: str) -> Status:
        """Returns whether a task is part of suites; raises as `task` does."""

    @abstractmethod
    def suite_path(self, suite: str) -> Path | None:
        """Returns the file that states a suite, or None if the suite is not of this source."""

    @abstractmethod
    def usable_ids(self, suite: str) -> list[str]:
        """Returns the tasks of a suite that some device supports."""

    def compiled_speedup(self, name: str, device: str) -> float | None:
        """Returns eager seconds over those of `torch.compile`, or None where it is not known."""
        return None


@cache
def task_sources() -> tuple[TaskSource, ...]:
    """Returns all registered sources, by the names of their entry points."""
    points = sorted(points_of(GROUP), key=lambda point: point.name)
    return tuple(point.load()() for point in points)


def source_of(name: str) -> TaskSource | None:
    """Returns the source that has a task's name, or None: then it is one of the package's own."""
    return next((source for source in task_sources() if source.has(name)), None)


def source_of_suite(suite: str) -> TaskSource | None:
    """Returns the source of a suite, or None if no source has it."""
    return next((source for source in task_sources() if source.suite_path(suite)), None)
