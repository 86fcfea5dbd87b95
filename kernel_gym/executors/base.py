"""The interface of executors, with the cache. Results may come in any order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from kernel_gym.devices import resolve
from kernel_gym.errors import InputError
from kernel_gym.executors.cache import EvaluationCache, Key
from kernel_gym.records import Evaluation
from kernel_gym.storage.secret import RunSecret, process_secret
from kernel_gym.tasks import Task
from kernel_gym.tasks.content import digest_of
from kernel_gym.tasks.registry import get_task


@dataclass(frozen=True)
class EvaluationRequest:
    """One requested evaluation. With a seed of None the executor's seed is used."""

    task: str
    source: str
    seed: int | None = None
    content: str = ""
    """The SHA-256 of the problem's texts, from :meth:`Executor.submit`; empty before."""

    def find(self) -> Task:
        """Returns the task, as the process that asks for it has it.

        Raises:
            TaskDiffers: This process has other texts of the problem than the one that submitted.
        """
        task = get_task(self.task)
        if self.content and digest_of(task.problem) != self.content:
            raise TaskDiffers(
                f"{self.task}: the worker has other texts of the problem than the submitter "
                f"({digest_of(task.problem)[:12]} instead of {self.content[:12]}); start both "
                "again, with the same kernel-gym and the same folders of tasks"
            )
        return task


class TaskDiffers(InputError):
    """A worker has a problem of the same name and with other texts."""


class Executor(ABC):
    """Evaluates submissions in the background.

    A submission with a seed is looked up in the cache first. Equal submissions that are in progress
    are evaluated once. Without a seed each evaluation draws other unseen workloads, so nothing is
    cached.

    Args:
        device: A device name; `auto` selects the best one.
        seed: The seed of submissions that have none.
        cache: A cache that the executors of a run share; by default a new one.
        secret: The secret of the run, mixed into every draw; by default the secret of this process,
            see :class:`~kernel_gym.evaluator.Evaluator`.

    Raises:
        UnknownDevice: There is no such device.
    """

    workers: int = 1
    room: int = 1
    """Number of submissions that it holds before :meth:`submit` blocks."""
    trouble: str = ""
    """Why nothing is evaluated now; empty if all is well."""

    def __init__(
        self,
        device: str = "auto",
        seed: int | None = None,
        cache: EvaluationCache | None = None,
        secret: RunSecret | None = None,
    ) -> None:
        self.device = resolve(device)
        self.seed = seed
        self.secret = process_secret() if secret is None else secret
        """The secret that is mixed into every seed."""
        self.cache = EvaluationCache() if cache is None else cache
        self._under_way: dict[Key, Future[Evaluation]] = {}

    def submit(self, task_id: str, source: str, seed: int | None = None) -> Future[Evaluation]:
        """Queues a submission. Blocks while the executor is full (see `room`).

        Args:
            task_id: The task.
            source: The submission, an untrusted text.
            seed: The seed of unseen workloads and data; by default the executor's.

        Returns:
            A future of the record. Failures of the submission and of the machine are outcomes of
            the record. Callbacks of the future must not submit.

        Raises:
            UnknownName: There is no such task.
        """
        content = digest_of(get_task(task_id).problem)
        seed = self.seed if seed is None else seed
        if seed is None:
            return self._start(EvaluationRequest(task_id, source, content=content))
        key = Key.of(task_id, source, self.device, seed, self.secret, content)
        answer: Future[Evaluation] = Future()
        if (cached := self.cache.get(key)) is not None:
            answer.set_result(cached)
            return answer
        first = self._under_way.get(key)
        if first is None:
            first = self._start(EvaluationRequest(task_id, source, seed, content))
            self._under_way[key] = first
            first.add_done_callback(lambda future: self._cache_result(key, future))
        first.add_done_callback(lambda future: _copy_result(future, answer))
        return answer

    def evaluate(self, task_id: str, source: str, seed: int | None = None) -> Evaluation:
        """Submits one submission and waits for the record."""
        return self.submit(task_id, source, seed).result()

    def results(self, requests: Iterable[EvaluationRequest]) -> Iterator[tuple[int, Evaluation]]:
        """Evaluates many requests. Two per worker are submitted ahead of the results taken.

        Args:
            requests: Any number of requests. The iterator advances as workers become free.

        Yields:
            The position of a request and its record, in the order in which they finish.
        """
        stream = iter(enumerate(requests))
        pending: dict[Future[Evaluation], int] = {}
        finished: SimpleQueue[Future[Evaluation]] = SimpleQueue()
        while True:
            while len(pending) < 2 * self.workers and (drawn := next(stream, None)):
                position, request = drawn
                future = self.submit(request.task, request.source, request.seed)
                pending[future] = position
                future.add_done_callback(finished.put)
            if not pending:
                return
            future = finished.get()
            yield pending.pop(future), future.result()

    @abstractmethod
    def close(self) -> None:
        """Cancels queued evaluations, waits for running ones, and frees the workers."""

    @abstractmethod
    def _start(self, request: EvaluationRequest) -> Future[Evaluation]:
        """Queues an evaluation that is not in the cache."""

    def _cache_result(self, key: Key, future: Future[Evaluation]) -> None:
        self._under_way.pop(key, None)
        if not future.cancelled() and future.exception() is None:
            self.cache.put(key, future.result())

    def __enter__(self) -> Self:
        """Returns the executor itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the executor."""
        self.close()


def _copy_result(source: Future[Evaluation], target: Future[Evaluation]) -> None:
    """Copies the result, error or cancellation of a future to another that is not cancelled."""
    if source.cancelled():
        target.cancel()
    elif target.set_running_or_notify_cancel():
        error = source.exception()
        if error is not None:
            target.set_exception(error)
        else:
            target.set_result(source.result())
