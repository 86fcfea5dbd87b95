"""Evaluations and rewards for training: many at a time, kept on disk, and never an exception.

Every evaluation is appended to `evaluations.jsonl` of the run. A resumed run reads it back, so that
nothing is evaluated twice.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.executors import Executor
from kernel_gym.executors.cache import Key
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.rewards import Context, Reward
from kernel_gym.storage.json_lines import append_line, drop_cut_off, read_lines
from kernel_gym.storage.secret import PUBLIC

log = logging.getLogger(__name__)
LEDGER = "evaluations.jsonl"
MOST = 1e6
"""No reward that reaches a trainer is larger than this in magnitude."""


@dataclass(frozen=True)
class Scored:
    """One submission: its evaluation, its reward, and what getting them took.

    Attributes:
        task: The task.
        source: What was submitted.
        evaluation: None when something of ours failed before there was a record.
        reward: None when something of ours failed: to be left out of training.
        seconds: From submission to result; 0 when it was known.
        cached: Whether it was known.
        error: What was raised, where something was; it has been logged.
    """

    task: str
    source: str
    evaluation: Evaluation | None
    reward: float | None
    seconds: float
    cached: bool
    error: str = ""


class Scorer:
    """Evaluates and scores batches through an executor with a seed.

    Each batch names its draw: what unseen workloads and data are drawn from, beside the executor's
    seed and secret. Equal sources are evaluated once in a draw, and anew in another one.

    Args:
        executor: What evaluates; its cache is filled from the run's ledger.
        reward: What scores.
        folder: The run folder.

    Raises:
        StoreError: A line of the ledger is no evaluation.
        ValueError: The executor has no seed, or no secret: a policy would learn what is drawn.
    """

    def __init__(self, executor: Executor, reward: Reward, folder: Path) -> None:
        if executor.seed is None:
            raise ValueError("the executor has no seed: equal submissions would not be equal")
        if executor.secret is PUBLIC:
            raise ValueError("the executor has no secret: a policy could compute what is drawn")
        self.executor, self.reward, self.seed = executor, reward, executor.seed
        self.ledger = folder / LEDGER
        self._known: set[Key] = set()
        self._read()
        self._ended = time.perf_counter()
        self.busy = 0.0
        """Of the evaluators' time since the batch before the last one, the share that they spent
        evaluating."""

    def __call__(
        self,
        batch: Sequence[tuple[str, str]],
        contexts: Sequence[Context] | None = None,
        *,
        draw: str,
    ) -> list[Scored]:
        """Scores a batch.

        Args:
            batch: Task ids and sources.
            draw: What is drawn from: the same name, the same workloads and data of a task.
            contexts: What the earlier turns of each submission's episode say.

        Returns:
            One result a submission, in order. A fault of ours is a masked one; what was raised is
            logged with its traceback.
        """
        seed = draw_seed(self.seed, draw)
        waiting = [self._submit(task, source, seed) for task, source in batch]
        contexts = contexts or [Context()] * len(batch)
        scored = [
            self._finish(one, context) for one, context in zip(waiting, contexts, strict=True)
        ]
        self._account(scored)
        return scored

    def _submit(self, task: str, source: str, seed: int) -> _Waiting:
        key = Key.of(task, source, self.executor.device, seed, self.executor.secret)
        one = _Waiting(task, source, key, cached=key in self._known)
        self._known.add(key)
        try:
            future = self.executor.submit(task, source, seed)
        except Exception as error:
            future = Future()
            future.set_exception(error)
        future.add_done_callback(lambda future: one.end())
        one.future = future
        return one

    def _finish(self, one: _Waiting, context: Context) -> Scored:
        evaluation, value, error = None, None, ""
        try:
            evaluation = one.future.result()
        except Exception as failure:
            error = _logged(f"{one.task} could not be evaluated", failure)
        else:
            try:
                value = _finite(self.reward(evaluation, context.of(one.source)).value)
            except Exception as failure:
                error = _logged(f"the reward of a submission to {one.task} failed", failure)
        if evaluation is None or evaluation.outcome is Outcome.INFRA:
            self._known.discard(one.key)
        elif not one.cached:
            append_line(self.ledger, evaluation)
        seconds = 0.0 if one.cached else one.seconds
        return Scored(one.task, one.source, evaluation, value, seconds, one.cached, error)

    def _account(self, scored: Sequence[Scored]) -> None:
        """Works out the share of the evaluators' time that was used."""
        now = time.perf_counter()
        fresh = [s.evaluation for s in scored if s.evaluation is not None and not s.cached]
        spent = sum(sum(evaluation.wall_seconds.values()) for evaluation in fresh)
        self.busy = min(spent / ((now - self._ended) * self.executor.workers), 1.0)
        self._ended = now

    def _read(self) -> None:
        """Fills the cache; a line that was cut off by a crash is evaluated again."""
        drop_cut_off(self.ledger)
        for found in read_lines(self.ledger, Evaluation):
            key = Key(
                found.task,
                found.source_sha256,
                found.device,
                found.seed or 0,
                secret_sha256=found.secret_sha256,
            )
            if found.protocol_version == key.protocol:
                self.executor.cache.put(key, found)
                self._known.add(key)


def draw_seed(seed: int, draw: str) -> int:
    """The public seed of a draw, of 63 bits.

    Example:
        >>> draw_seed(0, "step 1") == draw_seed(0, "step 1") != draw_seed(0, "step 2")
        True
    """
    digest = hashlib.sha256(f"{seed}/{draw}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


class _Waiting:
    """A submission under way."""

    def __init__(self, task: str, source: str, key: Key, cached: bool) -> None:
        self.task, self.source, self.key, self.cached = task, source, key, cached
        self.future: Future[Evaluation] = Future()
        self.seconds, self._start = 0.0, time.perf_counter()

    def end(self) -> None:
        """Notes how long it took."""
        self.seconds = time.perf_counter() - self._start


def _logged(what: str, error: Exception) -> str:
    """Logs an error of ours with its traceback; what it says in one line."""
    said = f"{type(error).__name__}: {error}"
    log.error("%s: %s", what, said, exc_info=error)
    return said


def _finite(value: float | None) -> float | None:
    if value is None or math.isnan(value):
        return None
    return min(max(value, -MOST), MOST)
