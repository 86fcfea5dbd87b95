"""Imported suites as a source of tasks.

Each look-up of a task asks this source, so it loads the readers of suites only for their tasks.
"""

from __future__ import annotations

from pathlib import Path

from kernel_gym.tasks.names import imported_ids, imported_suites, is_imported
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.sources import TaskSource
from kernel_gym.tasks.status import Status
from kernel_gym.tasks.task import Task


class ImportedTasks(TaskSource):
    """The tasks of all suites whose manifests are in the folder of imports."""

    def has(self, name: str) -> bool:
        """Whether a name begins with that of an imported suite."""
        return is_imported(name)

    def task(self, name: str) -> Task:
        """Returns a task; raises as `imported_task` does."""
        from kernel_gym.imports.imported import imported_task

        return imported_task(name)

    def problem(self, name: str) -> Problem:
        """Returns the problem of a task; raises as `imported_task` does."""
        from kernel_gym.imports.imported import imported_problem

        return imported_problem(name)

    def status(self, name: str) -> Status:
        """Returns the status that the manifest states, over all devices."""
        from kernel_gym.imports.imported import entry_of
        from kernel_gym.imports.manifest import ImportStatus

        status = entry_of(name).status()
        if status is ImportStatus.ADMITTED:
            return Status.ADMITTED
        refused = status in (ImportStatus.FLAGGED, ImportStatus.UNSUPPORTED)
        return Status.REFUSED if refused else Status.UNKNOWN

    def suite_path(self, suite: str) -> Path | None:
        """Returns the manifest of a suite, or None if it was not imported."""
        from kernel_gym.imports.manifest import manifest_path

        return manifest_path(suite) if suite in imported_suites() else None

    def usable_ids(self, suite: str) -> list[str]:
        """Returns the tasks of a suite that run on some device."""
        from kernel_gym.imports.imported import entry_of
        from kernel_gym.imports.manifest import ImportStatus

        usable = (ImportStatus.ADMITTED, ImportStatus.FLAGGED)
        return [name for name in imported_ids(suite) if entry_of(name).status() in usable]

    def compiled_speedup(self, name: str, device: str) -> float | None:
        """Returns eager seconds over those of `torch.compile`, as the import measured them."""
        from kernel_gym.imports.imported import compiled_speedup

        return compiled_speedup(name, device)
