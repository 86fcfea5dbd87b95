"""The queue on disk: submissions, their results and the sessions, in one SQLite file.

Every change is a transaction, so that a killed service has each submission queued, running or done,
and never half of it. Submissions that were running when it was killed are queued again at the next
start. A result is written once: only a running submission can become done.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from kernel_gym.client.wire import State
from kernel_gym.errors import InputError
from kernel_gym.service.jobs import Job, StoredSession, job_of

SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    token TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    task TEXT NOT NULL,
    source TEXT NOT NULL,
    seed INTEGER NOT NULL,
    reward TEXT NOT NULL,
    priority INTEGER NOT NULL,
    session TEXT,
    turn INTEGER,
    state TEXT NOT NULL,
    queued_at REAL NOT NULL,
    started_at REAL,
    finished_at REAL,
    evaluation TEXT,
    message TEXT NOT NULL DEFAULT '',
    UNIQUE (token, key),
    UNIQUE (session, turn)
);
DROP INDEX IF EXISTS jobs_in_order;
CREATE INDEX IF NOT EXISTS jobs_by_token ON jobs (token, priority DESC, seq) WHERE state = 'queued';
CREATE INDEX IF NOT EXISTS jobs_by_age ON jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY,
    token TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    task TEXT NOT NULL,
    reward TEXT NOT NULL,
    max_turns INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    discount REAL NOT NULL,
    created REAL NOT NULL,
    UNIQUE (token, key)
);
CREATE TABLE IF NOT EXISTS usage (
    token TEXT NOT NULL,
    day INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (token, day)
);
"""
FILE = "queue.sqlite3"
DAY = 86400


class KeyConflict(InputError, ValueError):
    """An idempotency key was used before for something else."""


class QueueUnusable(InputError):
    """The file of the queue cannot be used."""

    def __init__(self, path: Path, error: sqlite3.Error) -> None:
        """Makes the message.

        Args:
            path: The file.
            error: SQLite's error.
        """
        fix = "free the disk or end the program that holds it, and start again"
        if not isinstance(error, sqlite3.OperationalError):
            fix = f"save its rows with `sqlite3 {path} .recover`, or move it away to begin anew"
        super().__init__(f"{path}: {error}; {fix}")


JOB = ", ".join(field.name for field in fields(Job))
SESSION = ", ".join(field.name for field in fields(StoredSession))


class Store:
    """The tables. Threads may share it.

    Args:
        folder: The folder of the file. It is made if it does not exist.

    Raises:
        QueueUnusable: The file is damaged, or cannot be written now.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / FILE
        path.touch(mode=0o600)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            self._open = self._opened()
        except sqlite3.Error as error:
            self._db.close()
            raise QueueUnusable(path, error) from error
        self._queued = Counter(self._open)
        """Queued submissions by token. All that are open at the start are queued."""
        self._turns: dict[str, int] = {}
        """When each token had its last turn, as the number of that turn."""
        self._turn = 0

    def _opened(self) -> Counter[str]:
        """Prepares the file, and counts the open submissions of each token."""
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(SCHEMA)
        with self._changing() as db:
            db.execute("UPDATE jobs SET state = 'queued', started_at = NULL WHERE state='running'")
        counts = self._db.execute(
            "SELECT token, COUNT(*) FROM jobs WHERE finished_at IS NULL GROUP BY token"
        )
        return Counter(dict(counts.fetchall()))

    @property
    def queued(self) -> int:
        """Number of submissions that are queued."""
        return self._queued.total()

    def add(self, jobs: Sequence[Job], digests: Sequence[str]) -> list[Job]:
        """Queues submissions, all or none. One whose key is known already is not queued again.

        Args:
            jobs: The submissions.
            digests: The hash of what each request asked for, see :func:`digest_of`.

        Returns:
            The submissions as they are stored.

        Raises:
            KeyConflict: A key was used for something else, or the session has this turn already.
        """
        stored, new = [], []
        with self._changing() as db:
            for job, digest in zip(jobs, digests, strict=True):
                known = self._known(job.token, job.key, digest)
                stored.append(job if known is None else known)
                if known is not None:
                    continue
                names = [field.name for field in fields(Job)]
                values = [getattr(job, name) for name in names]
                try:
                    db.execute(
                        f"INSERT INTO jobs ({JOB}, digest) VALUES ({'?, ' * len(names)} ?)",
                        (*values, digest),
                    )
                except sqlite3.IntegrityError:
                    raise KeyConflict(
                        f"session {job.session} has a submission for turn {job.turn} already: "
                        "wait for its result"
                    ) from None
                new.append(job)
                db.execute(
                    "INSERT INTO usage VALUES (?, ?, 1) "
                    "ON CONFLICT (token, day) DO UPDATE SET count = count + 1",
                    (job.token, int(job.queued_at) // DAY),
                )
        for job in new:
            self._open[job.token] += 1
            self._queued[job.token] += 1
        return stored

    def known(self, token: str, keys: Sequence[str]) -> int:
        """How many of some keys are known."""
        with self._lock:
            return sum(self._known(token, key, None) is not None for key in keys)

    def take(self) -> Job | None:
        """Starts a queued submission; None if there is none.

        Tokens take turns: the next one is that whose last turn is the longest ago. Its first
        submission by priority and age is started.
        """
        with self._changing() as db:
            waiting = [token for token, count in self._queued.items() if count]
            if not waiting:
                return None
            token = min(waiting, key=lambda name: self._turns.get(name, 0))
            row = db.execute(
                "UPDATE jobs SET state = 'running', started_at = ? WHERE seq = (SELECT seq FROM "
                "jobs WHERE state = 'queued' AND token = ? ORDER BY priority DESC, seq LIMIT 1) "
                f"RETURNING {JOB}",
                (time.time(), token),
            ).fetchone()
        self._queued[token] -= 1
        self._turn += 1
        self._turns[token] = self._turn
        return job_of(row)

    def finish(self, job: Job, state: State, evaluation: str | None, message: str = "") -> bool:
        """Writes the result of a running submission.

        Returns:
            Whether it was running. A result is never written twice.
        """
        with self._changing() as db:
            changed = db.execute(
                "UPDATE jobs SET state = ?, evaluation = ?, message = ?, finished_at = ? "
                "WHERE id = ? AND state = 'running'",
                (state, evaluation, message, time.time(), job.id),
            ).rowcount
        self._open[job.token] -= changed
        return bool(changed)

    def queue_again(self, job: Job) -> None:
        """Queues a running submission again, because the service stops."""
        with self._changing() as db:
            changed = db.execute(
                "UPDATE jobs SET state = 'queued', started_at = NULL WHERE id = ? "
                "AND state = 'running'",
                (job.id,),
            ).rowcount
        self._queued[job.token] += changed

    def cancel(self, name: str, token: str) -> Job | None:
        """Cancels a submission if it is queued and of no session. Returns it, None if unknown."""
        with self._changing() as db:
            changed = db.execute(
                "UPDATE jobs SET state = 'cancelled', finished_at = ? WHERE id = ? AND token = ? "
                "AND state = 'queued' AND session IS NULL",
                (time.time(), name, token),
            ).rowcount
        self._open[token] -= changed
        self._queued[token] -= changed
        return self.get(name, token)

    def get(self, name: str, token: str) -> Job | None:
        """A submission of a token by its id."""
        rows = self._rows(f"SELECT {JOB} FROM jobs WHERE id = ? AND token = ?", name, token)
        return job_of(rows[0]) if rows else None

    def drop(self, older: float) -> int:
        """Deletes results that are older than a time, and sessions with all their turns.

        Returns:
            The number of submissions deleted.
        """
        with self._changing() as db:
            old = "(SELECT id FROM sessions WHERE created < ? AND id NOT IN (SELECT session FROM "
            old += "jobs WHERE session IS NOT NULL AND finished_at IS NULL))"
            count = db.execute(
                f"DELETE FROM jobs WHERE finished_at < ? AND (session IS NULL OR session IN {old})",
                (older, older),
            ).rowcount
            db.execute(
                "DELETE FROM sessions WHERE created < ? AND id NOT IN (SELECT session FROM jobs "
                "WHERE session IS NOT NULL)",
                (older,),
            )
        return count

    def used(self, token: str) -> int:
        """Number of submissions of a token today (UTC)."""
        day = int(time.time()) // DAY
        rows = self._rows("SELECT count FROM usage WHERE token = ? AND day = ?", token, day)
        return int(rows[0][0]) if rows else 0

    def in_flight(self, token: str) -> int:
        """Number of submissions of a token that are queued or running."""
        return self._open[token]

    def add_session(self, session: StoredSession, digest: str) -> StoredSession:
        """Stores an episode, or returns the one with the same key.

        Raises:
            KeyConflict: The key was used for something else.
        """
        with self._changing() as db:
            row = db.execute(
                f"SELECT {SESSION}, digest FROM sessions WHERE token = ? AND key = ?",
                (session.token, session.key),
            ).fetchone()
            if row is not None:
                _require_same(session.key, row[-1], digest)
                return StoredSession(*row[:-1])
            values = [getattr(session, field.name) for field in fields(session)]
            marks = "?, " * len(values)
            db.execute(
                f"INSERT INTO sessions ({SESSION}, digest) VALUES ({marks} ?)", (*values, digest)
            )
        return session

    def session(self, name: str, token: str) -> StoredSession | None:
        """An episode of a token by its id."""
        rows = self._rows(f"SELECT {SESSION} FROM sessions WHERE id = ? AND token = ?", name, token)
        return StoredSession(*rows[0]) if rows else None

    def owner(self, session: str) -> str | None:
        """The name of the token that began an episode; None if there is no such episode."""
        rows = self._rows("SELECT token FROM sessions WHERE id = ?", session)
        return str(rows[0][0]) if rows else None

    def turns(self, session: str) -> list[Job]:
        """The submissions of an episode in order."""
        rows = self._rows(f"SELECT {JOB} FROM jobs WHERE session = ? ORDER BY turn", session)
        return [job_of(row) for row in rows]

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._db.close()

    def _known(self, token: str, key: str, digest: str | None) -> Job | None:
        row = self._db.execute(
            f"SELECT {JOB}, digest FROM jobs WHERE token = ? AND key = ?", (token, key)
        ).fetchone()
        if row is None:
            return None
        if digest is not None:
            _require_same(key, row[-1], digest)
        return job_of(row[:-1])

    def _rows(self, text: str, *values: object) -> list[tuple]:
        with self._lock:
            return self._db.execute(text, values).fetchall()

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """A transaction. Counters must change after it, since its commit may fail."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:  # raised again below
                if self._db.in_transaction:  # SQLite ends it itself after some errors
                    self._db.execute("ROLLBACK")
                raise


def _require_same(key: str, known: str, digest: str) -> None:
    if known != digest:
        raise KeyConflict(f"key {key!r} was used before for something else: give another key")
