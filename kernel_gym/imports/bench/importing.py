"""Imports a suite: lists its tasks, prepares and admits each, and writes the manifest.

The manifest is written after each task. A task whose files are unchanged and that has a verdict on
the device is not done again, so an import that was interrupted continues where it stopped.
"""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol, runtime_checkable

from kernel_gym.devices import backend_of
from kernel_gym.devices.base import BrokenTaskError, InfraError
from kernel_gym.imports.bench.recorded import UnsoundWorkloadsError
from kernel_gym.imports.checkout import commit_of, licence_of
from kernel_gym.imports.manifest import (
    DeviceVerdict,
    ImportStatus,
    Manifest,
    ManifestEntry,
    ManifestError,
    data_path,
    manifest_path,
    read_data,
    read_manifest,
    write_data,
    write_manifest,
)
from kernel_gym.imports.readers.base import (
    CheckoutError,
    ConfinedRunner,
    FoundTask,
    Reader,
    Unsupported,
    UnsupportedTask,
    hashes,
)
from kernel_gym.imports.readers.recording import not_train, without_workloads
from kernel_gym.imports.traced.problem import TracedProblem
from kernel_gym.tasks.small_floats import UnfitDevice
from kernel_gym.tasks.task import Task

MAX_ADMISSIONS = 4
"""How often a task is admitted, each time without the workloads on which its own kernel fails.

The last time only the train workloads are left.
"""
MAX_LOST_DEVICES = 2
"""How often a task is tried while the device fails. Afterwards it has no verdict there."""
log = logging.getLogger(__name__)


class AdmittingBench(ConfinedRunner, Protocol):
    """A bench that also runs the controls of the admission."""

    def admit(self, task: Task) -> DeviceVerdict:
        """Runs the controls on a task."""


@runtime_checkable
class RemoteBench(Protocol):
    """A bench in another process, which does all that a task needs there."""

    @property
    def device(self) -> str:
        """The name of the device."""

    def verdict(
        self,
        found: FoundTask,
        reader: Reader,
        checkout: Path,
        folder: Path | None,
        traced: bool,
    ) -> DeviceVerdict:
        """Does what `verdict_on` does."""


AnyBench = AdmittingBench | RemoteBench


@dataclass(frozen=True)
class ImportStep:
    """One task of an import: its entry, and how many there are."""

    entry: ManifestEntry
    done: int
    total: int
    repeated: bool
    """Whether the verdict was in the manifest already."""


def import_suite(
    reader: Reader,
    checkout: Path,
    benches: Sequence[AnyBench],
    folder: Path | None = None,
    only: str = "*",
) -> Iterator[ImportStep]:
    """Imports the tasks of a suite, and yields each when it is in the manifest.

    Args:
        reader: The reader of the suite.
        checkout: Its checkout.
        benches: Run code of the suite and the controls, each one task at a time.
        folder: Where the manifest is written; None for the user's folder of imports.
        only: Patterns of names of tasks between commas; others keep what the manifest says.

    A task on which the device itself failed stays without a verdict, and is tried next time.

    Raises:
        CheckoutError: No task of the checkout fits the pattern.
    """
    patterns = only.split(",")
    listed = [
        one
        for one in reader.entries(checkout)
        if any(fnmatch.fnmatch(one.name, pattern) for pattern in patterns)
    ]
    if not listed:
        raise CheckoutError(f"{checkout}: no task of {reader.suite} fits {only!r}")
    manifest = _manifest(reader, checkout, folder)
    free: SimpleQueue[AnyBench] = SimpleQueue()
    for bench in benches:
        free.put(bench)

    def work(one: FoundTask | Unsupported) -> tuple[ManifestEntry, bool]:
        bench = free.get()
        try:
            known = manifest.tasks.get(one.name)
            return _imported(one, known, reader, checkout, bench, folder)
        finally:
            free.put(bench)

    with ThreadPoolExecutor(len(benches)) as pool:
        waiting = [pool.submit(work, one) for one in listed]
        try:
            for number, done in enumerate(as_completed(waiting), 1):
                entry, repeated = done.result()
                manifest = manifest.with_entry(entry)
                if not repeated:
                    write_manifest(manifest, folder)
                yield ImportStep(entry, number, len(listed), repeated)
        finally:
            pool.shutdown(cancel_futures=True)
    write_manifest(manifest, folder)


def _manifest(reader: Reader, checkout: Path, folder: Path | None) -> Manifest:
    """Returns the manifest to add to: that of a former import of the suite, or a new one."""
    tasks = {}
    if manifest_path(reader.suite, folder).is_file():
        try:
            tasks = read_manifest(reader.suite, folder).tasks
        except ManifestError:
            tasks = {}  # of another version, or half a file: everything is done again
    return Manifest(
        suite=reader.suite,
        checkout=str(checkout.resolve()),
        commit=commit_of(checkout),
        licence=licence_of(checkout),
        tasks=tasks,
    )


def _imported(
    one: FoundTask | Unsupported,
    known: ManifestEntry | None,
    reader: Reader,
    checkout: Path,
    bench: AnyBench,
    folder: Path | None,
) -> tuple[ManifestEntry, bool]:
    """Returns the entry of a task, and whether the manifest had it already."""
    if isinstance(one, Unsupported):
        return ManifestEntry(name=one.name, category=one.category, reason=one.reason), False
    try:
        files = hashes(checkout, one.files)
    except CheckoutError as error:
        return ManifestEntry(name=one.name, category=one.category, reason=str(error)), False
    same = known is not None and known.files == files and known.details == dict(one.details)
    stored = data_path(reader.suite, one.name, folder).is_file()
    verdicts = known.verdicts if known is not None and same else {}
    former = verdicts.get(bench.device)
    if known and former and (stored or former.status is ImportStatus.UNSUPPORTED):
        return known, True
    traced = stored and bool(verdicts) and _is_traced(one, reader, checkout, folder)
    entry = ManifestEntry(
        name=one.name,
        category=one.category,
        mode=one.mode,
        files=files,
        details=dict(one.details),
        verdicts={n: v for n, v in verdicts.items() if traced or _share(n, bench.device)},
    )
    for _ in range(MAX_LOST_DEVICES):
        try:
            if isinstance(bench, RemoteBench):
                verdict = bench.verdict(one, reader, checkout, folder, traced)
            else:
                verdict = verdict_on(one, reader, checkout, bench, folder, traced)
        except InfraError as error:  # no fault of the task: the next import tries it again
            log.warning("%s/%s: %s", reader.suite, one.name, error)
            continue
        known_there = {**entry.verdicts, bench.device: verdict}
        return entry.model_copy(update={"verdicts": known_there}), False
    return entry, False


def _share(one: str, other: str) -> bool:
    """Whether two devices share recorded workloads: both have small twins, or neither has."""
    return backend_of(one).full_size == backend_of(other).full_size


def verdict_on(
    found: FoundTask,
    reader: Reader,
    checkout: Path,
    bench: AdmittingBench,
    folder: Path | None,
    traced: bool,
) -> DeviceVerdict:
    """Prepares a task, writes what was prepared, and admits it.

    Args:
        found: The task.
        reader: The reader of its suite.
        checkout: The checkout.
        bench: Runs code of the suite and the controls.
        folder: Where the manifest is; None for the user's folder of imports.
        traced: Whether what is stored is a trace, which is one for all devices.

    Raises:
        InfraError: The device failed.
    """
    try:
        data = (
            read_data(reader.suite, found.name, folder)
            if traced
            else reader.prepare(checkout, found, bench)
        )
        left_out = 0
        for number in range(MAX_ADMISSIONS):
            problem = reader.problem(checkout, found, data)
            write_data(reader.suite, found.name, data, folder)
            try:
                verdict = bench.admit(Task(problem, found.mode))
            except UnsoundWorkloadsError as error:
                last = number == MAX_ADMISSIONS - 2
                unsound = not_train(data) if last else error.workloads
                left_out += len(unsound)
                data = without_workloads(data, unsound)
                continue
            note = f"{left_out} workloads are left out: its own kernel fails on them"
            notes = (*verdict.notes, note) if left_out else verdict.notes
            return verdict.model_copy(update={"notes": notes})
        raise UnsupportedTask("its own kernel fails again and again beyond the suite's sizes")
    except (UnsupportedTask, CheckoutError, UnfitDevice, BrokenTaskError) as error:
        return DeviceVerdict(status=ImportStatus.UNSUPPORTED, reason=_line(str(error)))
    except InfraError:
        raise
    except Exception as error:  # one task that trips us up must not end the import of the others
        log.exception("%s/%s", reader.suite, found.name)
        text = f"error of kernel-gym: {type(error).__name__}: {error}"
        return DeviceVerdict(status=ImportStatus.UNSUPPORTED, reason=_line(text))


def _is_traced(found: FoundTask, reader: Reader, checkout: Path, folder: Path | None) -> bool:
    """Whether what was prepared for another device is a trace, which is one for all devices."""
    try:
        data = read_data(reader.suite, found.name, folder)
        return isinstance(reader.problem(checkout, found, data), TracedProblem)
    except (ManifestError, CheckoutError, UnsupportedTask):
        return False


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
