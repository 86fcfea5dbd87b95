"""Imported tasks by name, read from manifests and from unchanged checkouts."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kernel_gym.errors import InputError
from kernel_gym.imports.manifest import Manifest, ManifestEntry, read_data, read_manifest
from kernel_gym.imports.readers.base import CheckoutError, FoundTask, UnsupportedTask, hashes
from kernel_gym.imports.readers.known import get_reader
from kernel_gym.imports.recorded.problem import RecordedProblem
from kernel_gym.tasks.names import UnknownName, imported_ids, imports_folder, split_imported
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.task import Task


class ChangedCheckoutError(InputError, ValueError):
    """A file of a checkout differs from the one that was imported."""


def imported_task(name: str) -> Task:
    """Returns an imported task, such as `tritonbench-g/softmax_triton1`.

    Raises:
        UnknownName: It was not imported. The message lists similar names.
        ManifestError: The manifest cannot be used.
        ChangedCheckoutError: The checkout has changed since.
        CheckoutError: A file of the checkout is missing.
        InputError: It is unsupported; the message has the reason.
    """
    problem = imported_problem(name)
    mode = entry_of(name).mode
    assert mode is not None  # otherwise there is no problem
    return Task(problem, mode)


def imported_problem(name: str) -> Problem:
    """Returns the problem of an imported task; raises as `imported_task` does."""
    return _problem(name, imports_folder())


def entry_of(name: str) -> ManifestEntry:
    """Returns the entry of an imported task in its manifest; raises as `imported_task` does."""
    suite, task = split_imported(name)
    if name not in imported_ids():
        raise UnknownName("task", name, imported_ids())
    return _manifest(suite, *_stamp(suite)).tasks[task]


def compiled_speedup(name: str, device: str) -> float | None:
    """Returns eager seconds over those of `torch.compile` of an imported task on a device.

    None for other tasks, and where it was not measured or could not be compiled.
    """
    if name not in imported_ids():
        return None
    verdict = entry_of(name).verdicts.get(device)
    return verdict.compiled.speedup if verdict and verdict.compiled else None


def changed_files(manifest: Manifest, entry: ManifestEntry) -> list[str]:
    """Returns the files of a task that are missing or differ from those that were imported."""
    changed = []
    for name, before in entry.files.items():
        try:
            now = hashes(Path(manifest.checkout), (name,))[name]
        except CheckoutError:
            now = ""
        if now != before:
            changed.append(name)
    return changed


@cache
def _problem(name: str, folder: Path) -> Problem:
    suite, task = split_imported(name)
    entry = entry_of(name)
    manifest = _manifest(suite, *_stamp(suite))
    if entry.mode is None:
        raise InputError(f"{name}: unsupported: {entry.reason}")
    if changed := changed_files(manifest, entry):
        raise ChangedCheckoutError(
            f"{name}: {changed[0]} of {manifest.checkout} has changed since it was imported; "
            f"run kernel-gym import {manifest.checkout} again"
        )
    listed = FoundTask(task, entry.category, entry.mode, tuple(entry.files), entry.details)
    reader, data = get_reader(suite), read_data(suite, task)
    try:
        problem = reader.problem(Path(manifest.checkout), listed, data)
    except UnsupportedTask as error:
        raise InputError(f"{name}: unsupported: {error}") from error
    if isinstance(problem, RecordedProblem):
        problem.find = imported_problem
    return problem


@cache
def _manifest(suite: str, folder: Path, changed: int) -> Manifest:
    return read_manifest(suite, folder)


def _stamp(suite: str) -> tuple[Path, int]:
    folder = imports_folder()
    path = folder / f"{suite}.json"
    return folder, path.stat().st_mtime_ns if path.is_file() else 0
