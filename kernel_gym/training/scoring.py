"""Evaluates and scores batches for training. Results are kept on disk, and nothing raises.

Every evaluation is appended to `evaluations.jsonl` in the run folder as soon as it is there. A
resumed run reads it back, so that nothing is evaluated twice.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
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
from kernel_gym.tasks.content import digest_of
from kernel_gym.tasks.names import UnknownName
from kernel_gym.tasks.registry import get_task

log = logging.getLogger(__name__)
LEDGER = "evaluations.jsonl"
MAX_REWARD = 1e6
"""Largest magnitude of a reward that a trainer gets."""


@dataclass(frozen=True)
class Scored:
    """The result of one submission.

    Attributes:
        task: The task id.
        source: The submission.
        evaluation: The evaluation; None if the gym failed before there was one.
        reward: The reward; None if the machine or the gym failed, which masks the submission.
        seconds: Time from submission to result, in seconds; 0 for a cached result.
        cached: Whether the result was in the cache.
        error: The exception in the gym as one line, which has been logged; "" if there was none.
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

    Each batch names its draw. Unseen workloads and data depend on that name and on the executor's
    seed and secret. Equal sources are evaluated once per draw.

    Args:
        executor: Evaluates submissions. Its cache is filled from the ledger of the run.
        reward: Scores evaluations.
        folder: The run folder.

    Raises:
        StoreError: A line of the ledger is not an evaluation.
        ValueError: The executor has no seed or no secret. Without a secret a policy could learn
            what is drawn.
    """

    def __init__(self, executor: Executor, reward: Reward, folder: Path) -> None:
        if executor.seed is None:
            raise ValueError("the executor has no seed: equal submissions would not be equal")
        if executor.secret is PUBLIC:
            raise ValueError("the executor has no secret: a policy could compute what is drawn")
        self.executor, self.reward, self.seed = executor, reward, executor.seed
        self.one_draw = ""
        """The draw in place of every batch's own, if any."""
        self.ledger = folder / LEDGER
        self._known: set[Key] = set()
        self._writing = threading.Lock()
        self._read()
        self._ended = time.perf_counter()
        self.busy = 0.0
        """The share of the workers' time since the previous batch that they spent evaluating."""

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
            contexts: The reward contexts of the submissions' episodes; by default empty ones.
            draw: The name of the draw. Equal names give equal workloads and data of a task.

        Returns:
            One result for each submission, in order. If the gym fails, the result is masked and the
            exception is logged with its traceback.
        """
        seed = draw_seed(self.seed, self.one_draw or draw)
        waiting = [self._submit(task, source, seed) for task, source in batch]
        contexts = contexts or [Context()] * len(batch)
        scored = [
            self._finish(reply, context) for reply, context in zip(waiting, contexts, strict=True)
        ]
        self._account(scored)
        return scored

    def _submit(self, task: str, source: str, seed: int) -> _Waiting:
        executor = self.executor
        key = Key.of(task, source, executor.device, seed, executor.secret, _content_of(task))
        reply = _Waiting(task, source, key, cached=key in self._known)
        self._known.add(key)
        try:
            future = self.executor.submit(task, source, seed)
        except Exception as error:  # any error belongs to this reply alone
            future = Future()
            future.set_exception(error)
        future.add_done_callback(lambda done: self._write(reply, done))
        return reply

    def _write(self, reply: _Waiting, done: Future[Evaluation]) -> None:
        """Notes the time of an evaluation, and writes it in the thread that has it."""
        reply.end()
        try:
            evaluation = done.result()
            if not reply.cached and evaluation.outcome is not Outcome.INFRA:
                with self._writing:
                    append_line(self.ledger, evaluation)
        except BaseException as error:  # the waiting caller gets it
            reply.future.set_exception(error)
        else:
            reply.future.set_result(evaluation)

    def _finish(self, reply: _Waiting, context: Context) -> Scored:
        evaluation, value, error = None, None, ""
        try:
            evaluation = reply.future.result()
        except Exception as failure:  # any error belongs to this reply alone
            error = _logged(f"{reply.task} could not be evaluated", failure)
        else:
            try:
                value = _finite(self.reward(evaluation, context.of(reply.source)).value)
            except Exception as failure:  # a user's reward may raise anything
                error = _logged(f"the reward of a submission to {reply.task} failed", failure)
        if evaluation is None or evaluation.outcome is Outcome.INFRA:
            self._known.discard(reply.key)
        seconds = 0.0 if reply.cached else reply.seconds
        return Scored(reply.task, reply.source, evaluation, value, seconds, reply.cached, error)

    def _account(self, scored: Sequence[Scored]) -> None:
        """Computes the share of the workers' time that was used."""
        now = time.perf_counter()
        fresh = [s.evaluation for s in scored if s.evaluation is not None and not s.cached]
        spent = sum(sum(evaluation.wall_seconds.values()) for evaluation in fresh)
        self.busy = min(spent / ((now - self._ended) * self.executor.workers), 1.0)
        self._ended = now

    def _read(self) -> None:
        """Fills the cache from the ledger. A line that a crash cut off is evaluated again."""
        drop_cut_off(self.ledger)
        for evaluation in read_lines(self.ledger, Evaluation):
            key = Key(
                evaluation.task,
                evaluation.source_sha256,
                evaluation.device,
                evaluation.seed or 0,
                secret_sha256=evaluation.secret_sha256,
                problem_sha256=evaluation.problem_sha256,
            )
            if evaluation.protocol_version == key.protocol:
                self.executor.cache.put(key, evaluation)
                self._known.add(key)


def _content_of(task: str) -> str:
    """Returns the digest of the texts that define a task's problem; empty if there is no task."""
    try:
        return digest_of(get_task(task).problem)
    except UnknownName:  # raised again where it is submitted
        return ""


def draw_seed(seed: int, draw: str) -> int:
    """The public seed of a draw, an integer of 63 bits.

    Example:
        >>> draw_seed(0, "step 1") == draw_seed(0, "step 1") != draw_seed(0, "step 2")
        True
    """
    digest = hashlib.sha256(f"{seed}/{draw}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


class _Waiting:
    """A submission in progress."""

    def __init__(self, task: str, source: str, key: Key, cached: bool) -> None:
        self.task, self.source, self.key, self.cached = task, source, key, cached
        self.future: Future[Evaluation] = Future()
        self.seconds, self._start = 0.0, time.perf_counter()

    def end(self) -> None:
        """Records the time that it took."""
        self.seconds = time.perf_counter() - self._start


def _logged(what: str, error: Exception) -> str:
    """Logs an exception in the gym with its traceback; returns it as one line."""
    line = f"{type(error).__name__}: {error}"
    log.error("%s: %s", what, line, exc_info=error)
    return line


def _finite(value: float | None) -> float | None:
    if value is None or math.isnan(value):
        return None
    return min(max(value, -MAX_REWARD), MAX_REWARD)
