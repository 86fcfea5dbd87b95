"""The run folder: everything that one evaluation of a policy produced.

    config.json      what was run; a run is resumed only with the same configuration
    secret.json      what draws were mixed with; only its owner may read it, and replays need it
    results.jsonl    one submission a line: evaluation, turn, reward
    sources/         the submissions, sources/<mode>/<problem>/turn_<n>.<py|hip>; where a task is
                     played several times, in a folder sample_<k> each
    ends.jsonl       the episodes that ended before their last turn, and why
    sessions.jsonl   when the run was played or gone on with, and by which command
    metrics.json     what `kernel-gym eval` made of it
    reflections.jsonl  what a reflective agent thought of its turns
    report.html      written by `kernel-gym report`
    figures/         what the report shows, as CSV and JSON

While a run goes on, lines are appended as they come. At its end they are put in order, by task,
sample and turn: two equal runs with one secret give equal files on the simulator but for
`wall_seconds` and `sessions.jsonl`.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from kernel_gym.records import Outcome
from kernel_gym.storage.json_lines import (
    StoreError,
    append_line,
    drop_cut_off,
    first_line,
    read_lines,
    write_lines,
    write_whole,
)
from kernel_gym.storage.run_records import EpisodeEnd, RunConfig, Session, TurnRecord
from kernel_gym.storage.secret import PUBLIC, SECRET, RunSecret, read_secret

CONFIG, RESULTS, SOURCES, REPORT = "config.json", "results.jsonl", "sources", "report.html"
METRICS, REFLECTIONS, FIGURES = "metrics.json", "reflections.jsonl", "figures"
ENDS, SESSIONS = "ends.jsonl", "sessions.jsonl"
SUFFIX = {"triton": ".py", "hip": ".hip"}


class RunStore:
    """Reads and writes one run folder.

    Args:
        folder: The run folder, which must hold a run; :meth:`start` makes one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = _read_config(folder)
        self._records = {_key(r): r for r in read_lines(folder / RESULTS, TurnRecord)}
        self._ends = {(e.task, e.sample): e for e in read_lines(folder / ENDS, EpisodeEnd)}

    @classmethod
    def start(
        cls,
        folder: Path,
        config: RunConfig,
        *,
        resume: bool = False,
        overwrite: bool = False,
        secret: RunSecret | None = None,
    ) -> RunStore:
        """Begins a run, or continues one.

        Args:
            folder: Where the run goes; made when absent.
            config: What is run.
            resume: Continue the run that the folder holds, if any. Submissions on which the
                machine failed are forgotten, with what came after them: they are played again.
            overwrite: Throw away the run that the folder holds, if any.
            secret: Of another run, to draw what it drew; by default a new run gets a new one.

        Returns:
            The store, with the records of the run that is continued.

        Raises:
            StoreError: The folder holds a run and neither was asked for, or the run to be continued
                has another configuration, another secret or none.
        """
        if (folder / CONFIG).exists():
            if overwrite:
                _clear(folder)
            elif resume:
                return cls._continue(folder, config, secret)
            else:
                raise StoreError(f"{folder} holds another run: give --resume or --overwrite")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SECRET).unlink(missing_ok=True)
        if secret is not PUBLIC:
            (secret or RunSecret.fresh()).write(folder / SECRET)
        write_whole(folder / RESULTS, "")
        write_whole(folder / ENDS, "")
        write_whole(folder / CONFIG, config.model_dump_json(indent=2) + "\n")
        return cls(folder)

    @classmethod
    def _continue(cls, folder: Path, config: RunConfig, secret: RunSecret | None) -> RunStore:
        store = cls(folder)
        own = store.secret.sha256
        if secret is not None and secret.sha256 != own:
            raise StoreError(f"{folder} holds another run: its secret is another one")
        recorded, wanted = store.config.identity(), config.identity()
        for key in dict.fromkeys((*recorded, *wanted)):
            found, asked = recorded.get(key), wanted.get(key)
            if found != asked:
                raise StoreError(
                    f"{folder} holds another run: its {key} is {found!r}, not {asked!r}; "
                    "give --overwrite or another folder"
                )
        store._forget_failures()
        store.finish()
        return store

    @property
    def secret(self) -> RunSecret:
        """What draws were mixed with.

        Raises:
            StoreError: Its file is missing, malformed or not ours to read.
        """
        return read_secret(self.folder / SECRET)

    def _forget_failures(self) -> None:
        """Drops each episode's turns from the first on which the machine failed."""
        first: dict[tuple[str, int], int] = {}
        for record in self.records():
            if record.evaluation.outcome is Outcome.INFRA:
                first.setdefault((record.task, record.sample), record.turn)
        self._records = {
            (task, sample, turn): record
            for (task, sample, turn), record in self._records.items()
            if turn < first.get((task, sample), turn + 1)
        }
        self._ends = {key: end for key, end in self._ends.items() if key not in first}

    def records(self) -> list[TurnRecord]:
        """Every submission so far, by task in the run's order, sample and turn."""
        position = {task: i for i, task in enumerate(self.config.tasks)}
        return sorted(self._records.values(), key=lambda r: (position[r.task], r.sample, r.turn))

    def turns(self, task_id: str, sample: int | None = None) -> list[TurnRecord]:
        """The submissions on one task, in order; those of one sample where it is given."""
        own = [record for record in self.records() if record.task == task_id]
        return own if sample is None else [record for record in own if record.sample == sample]

    def source(self, record: TurnRecord) -> str:
        """The text of a submission."""
        return (self.folder / record.source).read_text(encoding="utf-8")

    def source_path(self, task_id: str, turn: int, language: str, sample: int = 1) -> str:
        """Where the text of a submission belongs, relative to the folder."""
        inside = f"sample_{sample}/" if self.config.samples > 1 else ""
        return f"{SOURCES}/{task_id}/{inside}turn_{turn}{SUFFIX[language]}"

    def append(self, record: TurnRecord, source: str) -> None:
        """Adds a submission; it is on disk when this returns."""
        path = self.folder / record.source
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8", errors="backslashreplace", newline="")
        append_line(self.folder / RESULTS, record)
        self._records[_key(record)] = record

    def end(self, task_id: str, sample: int = 1, reason: str = "") -> None:
        """Notes that an episode is over before its last turn; it is not gone on with later."""
        turns = sum(key[:2] == (task_id, sample) for key in self._records)
        end = EpisodeEnd(task=task_id, sample=sample, turns=turns, reason=reason)
        append_line(self.folder / ENDS, end)
        self._ends[task_id, sample] = end

    def ends(self) -> list[EpisodeEnd]:
        """The episodes that ended before their last turn, by task in the run's order and sample."""
        position = {task: i for i, task in enumerate(self.config.tasks)}
        return sorted(self._ends.values(), key=lambda end: (position[end.task], end.sample))

    def is_over(self, task_id: str, sample: int = 1) -> bool:
        """Whether an episode has all its turns, or ended before."""
        last = (task_id, sample, self.config.turns)
        return (task_id, sample) in self._ends or last in self._records

    def unfinished(self) -> list[tuple[str, int]]:
        """The episodes that are not over, or have not begun, as pairs of task and sample."""
        samples = range(1, self.config.samples + 1)
        every = [(task, sample) for task in self.config.tasks for sample in samples]
        return [episode for episode in every if not self.is_over(*episode)]

    @contextmanager
    def session(self, command: str) -> Iterator[None]:
        """Notes when a command begins to play the run, and when it ends.

        Args:
            command: As it may be given again.
        """
        session = Session(started=time.time(), command=command)
        path = self.folder / SESSIONS
        drop_cut_off(path)
        append_line(path, session)
        try:
            yield
        finally:
            append_line(path, session.model_copy(update={"ended": time.time()}))

    def sessions(self) -> list[Session]:
        """The times that the run was played, in order."""
        found = {one.started: one for one in read_lines(self.folder / SESSIONS, Session)}
        return sorted(found.values(), key=lambda one: one.started)

    def finish(self) -> None:
        """Puts the lines in order."""
        write_lines(self.folder / RESULTS, self.records())
        write_lines(self.folder / ENDS, self.ends())


def _key(record: TurnRecord) -> tuple[str, int, int]:
    return record.task, record.sample, record.turn


def _read_config(folder: Path) -> RunConfig:
    path = folder / CONFIG
    if not path.is_file():
        raise StoreError(f"{folder} holds no run: {CONFIG} is missing")
    try:
        return RunConfig.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise StoreError(f"{path}: {first_line(error)}") from error


def _clear(folder: Path) -> None:
    """Removes what a run wrote and nothing else."""
    for name in (CONFIG, SECRET, RESULTS, ENDS, SESSIONS, REPORT, METRICS, REFLECTIONS):
        (folder / name).unlink(missing_ok=True)
    for name in (SOURCES, FIGURES):
        shutil.rmtree(folder / name, ignore_errors=True)
