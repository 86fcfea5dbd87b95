"""The replies of a run to tasks of imported suites: what files in the formats of suites hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.analysis.suite_metrics import rows_of, speedup_of_rows, speedup_of_sums, was_called
from kernel_gym.episodes.history import best_turn
from kernel_gym.imports.imported import entry_of
from kernel_gym.imports.manifest import ManifestEntry, read_manifest
from kernel_gym.records import Outcome
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.run_records import TurnRecord
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import get_task
from kernel_gym.tasks.names import split_imported
from kernel_gym.tasks.task import Task


@dataclass(frozen=True)
class ImportedReply:
    """The best reply of some turns to an imported task, or the last one if none is right.

    Attributes:
        task: The task.
        record: The turn of the reply.
        source: Its text.
        called: Whether any of the turns was built and its first call returned.
    """

    task: Task
    record: TurnRecord
    source: str
    called: bool

    @property
    def entry(self) -> ManifestEntry:
        """The task in the manifest of its suite."""
        return entry_of(self.task.id)

    @property
    def name(self) -> str:
        """The name of the task in its suite."""
        return self.entry.name

    @property
    def file(self) -> str:
        """The path of the task's file in the checkout."""
        return str(self.entry.details.get("file", self.name))

    @property
    def file_name(self) -> str:
        """The name of the task's file, without folders."""
        return self.file.rpartition("/")[2]

    @property
    def right(self) -> bool:
        """Whether it passed."""
        return self.record.evaluation.outcome is Outcome.PASSED

    @property
    def rows(self) -> list[tuple[float, float]]:
        """Milliseconds of reference and candidate on each train workload; [] if it is not right."""
        return rows_of(self.record.evaluation) if self.right else []

    @property
    def mean_of_ratios(self) -> float:
        """The mean of the ratios of train workloads; 0 if it is not right."""
        return speedup_of_rows(self.rows) if self.rows else 0.0

    @property
    def ratio_of_sums(self) -> float:
        """The sum of reference times over that of candidate times; 0 if it is not right."""
        return speedup_of_sums(self.rows) if self.rows else 0.0

    @property
    def message(self) -> str:
        """Why it is not right, in one line; "" if it is."""
        return self.record.evaluation.message


def best_replies(store: RunStore, *suites: str) -> list[ImportedReply]:
    """Returns the best reply of all samples for each task of some suites, or of all suites.

    Args:
        store: The run.
        suites: Names of suites; without one, every imported task counts.

    Raises:
        StoreError: The run has no reply to such a task.
    """
    return list(_required(store, suites, _of_task(store, suites)))


def replies_of_sample(store: RunStore, sample: int, *suites: str) -> list[ImportedReply]:
    """Returns the best reply of one sample for each task of some suites.

    Args:
        store: The run.
        sample: The number of the sample, from 1.
        suites: Names of suites.

    Raises:
        StoreError: The sample has no reply to such a task.
    """
    return list(_required(store, suites, _of_task(store, suites, sample)))


def checkout_of(suite: str) -> Path:
    """Returns the folder of the checkout from which a suite was imported."""
    return Path(read_manifest(suite).checkout)


def suites_of(store: RunStore) -> list[str]:
    """Returns the imported suites of a run, in the order of its tasks."""
    recorded = (name for name in store.config.tasks if get_task(name).problem.suite)
    return list(dict.fromkeys(split_imported(name)[0] for name in recorded))


def _of_task(
    store: RunStore, suites: Sequence[str], sample: int | None = None
) -> Iterator[ImportedReply]:
    for name in store.config.tasks:
        task = get_task(name)
        if not task.problem.suite or (suites and split_imported(name)[0] not in suites):
            continue
        turns = store.turns(name, sample)
        if turns:
            record = best_turn(turns) or turns[-1]
            called = any(was_called(turn.evaluation) for turn in turns)
            yield ImportedReply(task, record, store.source(record), called)


def _required(
    store: RunStore, suites: Sequence[str], replies: Iterator[ImportedReply]
) -> Iterator[ImportedReply]:
    some = False
    for reply in replies:
        some = True
        yield reply
    if not some:
        what = " or ".join(suites) if suites else "an imported suite"
        raise StoreError(f"{store.folder}: found no reply to a task of {what}")
