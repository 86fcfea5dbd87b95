"""The run folder: everything that one evaluation of a policy produced.

    config.json      the configuration; a run is resumed only with the same configuration
    secret.json      the secret that is mixed into draws; only its owner may read it
    results.jsonl    one submission per line: evaluation, turn, reward
    sources/         the submissions, sources/<mode>/<problem>/turn_<n>.<py|hip>; if a task is
                     played several times, in one folder sample_<k> per episode
    plans/           the launch plans of the submissions, on simulated devices
    ends.jsonl       the episodes that ended before their last turn, and why
    sessions.jsonl   when the run was played or resumed, and by which command
    tokens.jsonl     token ids and log-probabilities of replies, from a policy that has them
    metrics.json     the metrics, written by `kernel-gym eval`
    reflections.jsonl  the notes of a reflective agent on its turns
    workspaces/, transcripts/, agent.jsonl, clock.jsonl
                     of command-line agents, see :mod:`kernel_gym.agents.play`
    report.html      written by `kernel-gym report`
    episodes/        a page for each episode, written by `kernel-gym report`
    figures/         the data of the report, as CSV and JSON

During a run lines are appended as evaluations finish. At its end they are sorted by task, sample
and turn. On the simulator two equal runs with one secret give equal files, except for
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
from kernel_gym.storage.run_lock import RunLock, lock_run
from kernel_gym.storage.run_records import (
    EpisodeEnd,
    ReplyTokens,
    RunConfig,
    RunSession,
    TurnRecord,
    TurnTokens,
)
from kernel_gym.storage.secret import PUBLIC, SECRET, RunSecret, read_secret
from kernel_gym.tasks.inside import read_inside

PLANS = "plans"
CONFIG, RESULTS, SOURCES, REPORT = "config.json", "results.jsonl", "sources", "report.html"
METRICS, REFLECTIONS, FIGURES = "metrics.json", "reflections.jsonl", "figures"
EPISODES, REPLIES = "episodes", "replies.jsonl"
ENDS, SESSIONS, TOKENS = "ends.jsonl", "sessions.jsonl", "tokens.jsonl"
WORKSPACES, TRANSCRIPTS, STARTS, CLOCK = "workspaces", "transcripts", "agent.jsonl", "clock.jsonl"
SUFFIX = {"triton": ".py", "hip": ".hip"}


class RunStore:
    """Reads and writes one run folder.

    Args:
        folder: The run folder. It must hold a run; :meth:`start` makes one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: RunLock | None = None  # of a store that plays
        self.config = _read_config(folder)
        self._records = {_key(r): r for r in read_lines(folder / RESULTS, TurnRecord)}
        self._ends = {(e.task, e.sample): e for e in read_lines(folder / ENDS, EpisodeEnd)}
        planned = set(self.config.tasks)
        for task, *_ in (*self._records, *self._ends):
            if task not in planned:
                raise StoreError(f"{folder}: a record names {task!r}, no task of {CONFIG}")

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
        """Begins a run, or resumes one.

        Args:
            folder: The run folder. It is made if it does not exist.
            config: The configuration of the run.
            resume: Resume the run in the folder, if there is one. In each episode the turns from
                the first failure of the machine on are dropped and played again.
            overwrite: Delete the run in the folder, if there is one.
            secret: The secret of another run, to repeat its draws; by default a new secret.

        Returns:
            The store, with the records of the resumed run.

        Raises:
            StoreError: Another process plays a run there; or the folder holds a run and neither
                `resume` nor `overwrite` is set, or the run to resume has another configuration,
                another secret or none.
        """
        folder.mkdir(parents=True, exist_ok=True)
        lock = lock_run(folder)
        if (folder / CONFIG).exists():
            if overwrite:
                _clear(folder)
            elif resume:
                store = cls._resume(folder, config, secret)
                store._lock = lock
                return store
            else:
                raise StoreError(f"{folder} holds another run: give --resume or --overwrite")
        (folder / SECRET).unlink(missing_ok=True)
        (secret or RunSecret.fresh()).write(folder / SECRET)
        write_whole(folder / RESULTS, "")
        write_whole(folder / ENDS, "")
        write_whole(folder / CONFIG, config.model_dump_json(indent=2) + "\n")
        store = cls(folder)
        store._lock = lock
        return store

    @classmethod
    def _resume(cls, folder: Path, config: RunConfig, secret: RunSecret | None) -> RunStore:
        store = cls(folder)
        own = store.secret.sha256
        if secret is not None and secret.sha256 != own:
            raise StoreError(f"{folder} holds another run: its secret is another one")
        recorded, wanted = store.config.identity(), config.identity()
        for key in dict.fromkeys((*recorded, *wanted)):
            before, now = recorded.get(key), wanted.get(key)
            if before != now:
                raise StoreError(
                    f"{folder} holds another run: its {key} is {before!r}, not {now!r}; "
                    "give --overwrite or another folder"
                )
        store._forget_failures()
        store.finish()
        return store

    @property
    def secret(self) -> RunSecret:
        """The secret that is mixed into draws.

        Earlier versions wrote no file for draws from the seed alone.

        Raises:
            StoreError: Its file is missing, malformed or not readable.
        """
        path, records = self.folder / SECRET, self.records()
        if not path.exists() and records and not any(r.evaluation.secret_sha256 for r in records):
            return PUBLIC
        return read_secret(path)

    @property
    def plans(self) -> Path:
        """The folder of the launch plans of the submissions."""
        return self.folder / PLANS

    def _forget_failures(self) -> None:
        """Drops the turns of each episode from the first failure of the machine on."""
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
        """Returns all submissions so far, by task in the run's order, sample and turn."""
        position = {task: i for i, task in enumerate(self.config.tasks)}
        return sorted(self._records.values(), key=lambda r: (position[r.task], r.sample, r.turn))

    def turns(self, task_id: str, sample: int | None = None) -> list[TurnRecord]:
        """Returns the submissions on a task in order, or only those of one sample."""
        own = [record for record in self.records() if record.task == task_id]
        return own if sample is None else [record for record in own if record.sample == sample]

    def source(self, record: TurnRecord) -> str:
        """Returns the text of a submission, to the byte.

        Raises:
            StoreError: Its file is missing, is no UTF-8, or is outside of the run folder.
        """
        try:
            return read_inside(self.folder, self.folder / record.source).decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StoreError(f"{self.folder / record.source}: {reason}") from None

    def source_path(self, task_id: str, turn: int, language: str, sample: int = 1) -> str:
        """Returns the path of a submission's text, relative to the folder."""
        inside = f"sample_{sample}/" if self.config.samples > 1 else ""
        return f"{SOURCES}/{task_id}/{inside}turn_{turn}{SUFFIX[language]}"

    def append(self, record: TurnRecord, source: str) -> None:
        """Appends a submission. It is written to files when this returns."""
        path = self.folder / record.source
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8", errors="backslashreplace", newline="")
        append_line(self.folder / RESULTS, record)
        self._records[_key(record)] = record

    def append_tokens(self, record: TurnRecord, tokens: ReplyTokens) -> None:
        """Appends the tokens of a submission's reply. They are on disk when this returns."""
        task, sample, turn = _key(record)
        line = TurnTokens(task=task, sample=sample, turn=turn, tokens=tokens)
        append_line(self.folder / TOKENS, line)

    def tokens(self) -> dict[tuple[str, int, int], ReplyTokens]:
        """Returns the tokens of replies by task, sample and turn; of a turn played twice the last.

        Raises:
            StoreError: A line is malformed.
        """
        lines = read_lines(self.folder / TOKENS, TurnTokens)
        return {(line.task, line.sample, line.turn): line.tokens for line in lines}

    def end(self, task_id: str, sample: int = 1, reason: str = "") -> None:
        """Records that an episode ended before its last turn. It is not resumed later."""
        turns = sum(key[:2] == (task_id, sample) for key in self._records)
        end = EpisodeEnd(task=task_id, sample=sample, turns=turns, reason=reason)
        append_line(self.folder / ENDS, end)
        self._ends[task_id, sample] = end

    def ends(self) -> list[EpisodeEnd]:
        """Returns the episodes that ended before their last turn, by task and sample."""
        position = {task: i for i, task in enumerate(self.config.tasks)}
        return sorted(self._ends.values(), key=lambda end: (position[end.task], end.sample))

    def is_over(self, task_id: str, sample: int = 1) -> bool:
        """Whether an episode has all its turns, or ended earlier."""
        last = (task_id, sample, self.config.turns)
        return (task_id, sample) in self._ends or last in self._records

    def unfinished(self) -> list[tuple[str, int]]:
        """Returns the episodes that are not over, as pairs of task and sample."""
        samples = range(1, self.config.samples + 1)
        every = [(task, sample) for task in self.config.tasks for sample in samples]
        return [episode for episode in every if not self.is_over(*episode)]

    @contextmanager
    def session(self, command: str) -> Iterator[None]:
        """Records when a command starts to play the run, and when it ends.

        Args:
            command: The command, in a form that can be run again.
        """
        session = RunSession(started=time.time(), command=command)
        path = self.folder / SESSIONS
        drop_cut_off(path)
        append_line(path, session)
        try:
            yield
        finally:
            append_line(path, session.model_copy(update={"ended": time.time()}))

    def sessions(self) -> list[RunSession]:
        """Returns the periods in which the run was played, in order."""
        sessions = read_lines(self.folder / SESSIONS, RunSession)
        last = {session.started: session for session in sessions}
        return sorted(last.values(), key=lambda session: session.started)

    def finish(self) -> None:
        """Sorts the lines of the files."""
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
    """Removes the files of a run and nothing else."""
    for name in (
        CONFIG,
        SECRET,
        RESULTS,
        ENDS,
        SESSIONS,
        REPORT,
        METRICS,
        REFLECTIONS,
        REPLIES,
        TOKENS,
        STARTS,
        CLOCK,
    ):
        (folder / name).unlink(missing_ok=True)
    for name in (SOURCES, PLANS, FIGURES, EPISODES, WORKSPACES, TRANSCRIPTS):
        shutil.rmtree(folder / name, ignore_errors=True)
