"""Evaluations and rewards for training: many at a time, kept on disk, and never an exception.

Every evaluation is appended to `evaluations.jsonl` of the run. A resumed run reads it back, so that
nothing is evaluated twice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from kernel_gym.executors import Executor
from kernel_gym.executors.cache import Key
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.rewards import Context, Reward

LEDGER = "evaluations.jsonl"
MOST = 1e6
"""No reward that reaches a trainer is larger than this in magnitude."""


@dataclass(frozen=True)
class Scored:
    """One submission: its evaluation, its reward, and what getting them took.

    Attributes:
        task: The task.
        source: What was submitted.
        evaluation: None when the machine failed before there was a record.
        reward: None when the machine failed: to be left out of training.
        seconds: From submission to result; 0 when it was known.
        cached: Whether it was known.
    """

    task: str
    source: str
    evaluation: Evaluation | None
    reward: float | None
    seconds: float
    cached: bool


class Scorer:
    """Evaluates and scores batches through an executor with a seed.

    Args:
        executor: What evaluates; its cache is filled from the run's ledger.
        reward: What scores.
        folder: The run folder.
    """

    def __init__(self, executor: Executor, reward: Reward, folder: Path) -> None:
        if executor.seed is None:
            raise ValueError("the executor has no seed: equal submissions would not be equal")
        self.executor, self.reward, self.seed = executor, reward, executor.seed
        self.ledger = folder / LEDGER
        self._known: set[Key] = set()
        self._read()

    def __call__(
        self, batch: Sequence[tuple[str, str]], contexts: Sequence[Context] | None = None
    ) -> list[Scored]:
        """Scores a batch.

        Args:
            batch: Task ids and sources.
            contexts: What the earlier turns of each submission's episode say.

        Returns:
            One result a submission, in order. A fault of ours is a masked one.
        """
        waiting = [self._submit(task, source) for task, source in batch]
        contexts = contexts or [Context()] * len(batch)
        return [
            self._finish(task, source, *future, context)
            for (task, source), future, context in zip(batch, waiting, contexts, strict=True)
        ]

    def _submit(self, task: str, source: str) -> tuple[Future[Evaluation], float, bool]:
        key = Key.of(task, source, self.executor.device, self.seed)
        cached = key in self._known
        self._known.add(key)
        try:
            return self.executor.submit(task, source), time.perf_counter(), cached
        except Exception as error:
            failed: Future[Evaluation] = Future()
            failed.set_exception(error)
            return failed, time.perf_counter(), cached

    def _finish(
        self,
        task: str,
        source: str,
        future: Future[Evaluation],
        start: float,
        cached: bool,
        context: Context,
    ) -> Scored:
        try:
            evaluation = future.result()
            value = self.reward(evaluation, context.of(source)).value
        except Exception:
            return Scored(task, source, None, None, time.perf_counter() - start, cached)
        seconds = 0.0 if cached else time.perf_counter() - start
        if evaluation.outcome is Outcome.INFRA:
            self._known.discard(Key.of(task, source, self.executor.device, self.seed))
        elif not cached:
            with self.ledger.open("a", encoding="utf-8") as ledger:
                ledger.write(evaluation.model_dump_json() + "\n")
        return Scored(task, source, evaluation, _finite(value), seconds, cached)

    def _read(self) -> None:
        """Fills the cache; a line that was cut off by a crash is evaluated again."""
        lines = self.ledger.read_text(encoding="utf-8").splitlines() if self.ledger.exists() else []
        for line in lines:
            try:
                found = Evaluation.model_validate_json(line)
            except ValidationError:
                continue
            key = Key(found.task, found.source_sha256, found.device, found.seed or 0)
            if found.protocol_version == key.protocol:
                self.executor.cache.put(key, found)
                self._known.add(key)


def _finite(value: float | None) -> float | None:
    if value is None or math.isnan(value):
        return None
    return min(max(value, -MOST), MOST)
