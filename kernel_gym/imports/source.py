"""Imported suites as a source of tasks."""

from __future__ import annotations

from pathlib import Path

from kernel_gym.imports.imported import (
    compiled_speedup,
    entry_of,
    imported_problem,
    imported_task,
)
from kernel_gym.imports.manifest import ImportStatus, manifest_path
from kernel_gym.tasks.names import imported_ids, imported_suites, is_imported
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.sources import TaskSource
from kernel_gym.tasks.status import Status
from kernel_gym.tasks.task import Task

_STATUS: dict[ImportStatus | None, Status] = {
    ImportStatus.ADMITTED: Status.ADMITTED,
    ImportStatus.FLAGGED: Status.REFUSED,
    ImportStatus.UNSUPPORTED: Status.REFUSED,
}
_USABLE = (ImportStatus.ADMITTED, ImportStatus.FLAGGED)


class ImportedTasks(TaskSource):
    """The tasks of all suites whose manifests are in the folder of imports."""

    def has(self, name: str) -> bool:
        """Whether a name begins with that of an imported suite."""
        return is_imported(name)

    def task(self, name: str) -> Task:
        """Returns a task; raises as `imported_task` does."""
        return imported_task(name)

    def problem(self, name: str) -> Problem:
        """Returns the problem of a task; raises as `imported_task` does."""
        return imported_problem(name)

    def status(self, name: str) -> Status:
        """Returns the status that the manifest states, over all devices."""
        return _STATUS.get(entry_of(name).status(), Status.UNKNOWN)

    def suite_path(self, suite: str) -> Path | None:
        """Returns the manifest of a suite, or None if it was not imported."""
        return manifest_path(suite) if suite in imported_suites() else None

    def usable_ids(self, suite: str) -> list[str]:
        """Returns the tasks of a suite that run on some device."""
        return [name for name in imported_ids(suite) if entry_of(name).status() in _USABLE]

    def compiled_speedup(self, name: str, device: str) -> float | None:
        """Returns eager seconds over those of `torch.compile`, as the import measured them."""
        return compiled_speedup(name, device)
