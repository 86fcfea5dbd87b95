"""What every executor promises: the interface, the cache, and the order of nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from kernel_gym.devices import resolve
from kernel_gym.executors.cache import EvaluationCache, Key
from kernel_gym.records import Evaluation
from kernel_gym.storage.secret import RunSecret, process_secret
from kernel_gym.tasks.registry import get_task


@dataclass(frozen=True)
class Request:
    """One evaluation to do. A seed of None leaves it to the executor."""

    task: str
    source: str
    seed: int | None = None


class Executor(ABC):
    """Evaluates submissions in the background.

    A submission with a seed is looked up in the cache first, and equal submissions under way are
    evaluated once. Without a seed the unseen workloads are drawn anew, so nothing is cached.

    Args:
        device: A device name; `auto` takes the best one.
        seed: For submissions without one of their own.
        cache: Shared with other executors of a run; by default one of its own.
        secret: Of the run, mixed into every draw; by default one of this process, see
            :class:`~kernel_gym.evaluator.Evaluator`.

    Raises:
        UnknownDevice: No such device.
    """

    workers: int = 1
    room: int = 1
    """Submissions that it holds before :meth:`submit` blocks."""

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
        """What seeds are mixed with."""
        self.cache = EvaluationCache() if cache is None else cache
        self._under_way: dict[Key, Future[Evaluation]] = {}

    def submit(self, task_id: str, source: str, seed: int | None = None) -> Future[Evaluation]:
        """Queues a submission. Blocks while the executor holds as many as it takes.

        Args:
            task_id: The task.
            source: Untrusted text.
            seed: What unseen workloads and data are drawn from; by default the executor's.

        Returns:
            A future whose result is the record: a submission that fails, and a machine that does,
            are outcomes. Its callbacks must not submit.

        Raises:
            UnknownName: No such task.
        """
        get_task(task_id)
        seed = self.seed if seed is None else seed
        if seed is None:
            return self._start(Request(task_id, source))
        key = Key.of(task_id, source, self.device, seed, self.secret)
        answer: Future[Evaluation] = Future()
        if (found := self.cache.get(key)) is not None:
            answer.set_result(found)
            return answer
        first = self._under_way.get(key)
        if first is None:
            first = self._start(Request(task_id, source, seed))
            self._under_way[key] = first
            first.add_done_callback(lambda future: self._keep(key, future))
        first.add_done_callback(lambda future: _pass_on(future, answer))
        return answer

    def evaluate(self, task_id: str, source: str, seed: int | None = None) -> Evaluation:
        """Submits and waits."""
        return self.submit(task_id, source, seed).result()

    def results(self, requests: Iterable[Request]) -> Iterator[tuple[int, Evaluation]]:
        """Evaluates many, a few ahead of what is taken.

        Args:
            requests: Any number of requests; they are drawn as workers become free.

        Yields:
            The position of a request and its record, as they finish.
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
        """Drops what is queued, waits for what runs, and frees the workers."""

    @abstractmethod
    def _start(self, request: Request) -> Future[Evaluation]:
        """Queues an evaluation that is not cached."""

    def _keep(self, key: Key, future: Future[Evaluation]) -> None:
        self._under_way.pop(key, None)
        if not future.cancelled() and future.exception() is None:
            self.cache.put(key, future.result())

    def __enter__(self) -> Self:
        """The executor itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes it."""
        self.close()


def _pass_on(source: Future[Evaluation], target: Future[Evaluation]) -> None:
    """Gives one future's end to another that nobody has given up on."""
    if source.cancelled():
        target.cancel()
    elif target.set_running_or_notify_cancel():
        error = source.exception()
        if error is not None:
            target.set_exception(error)
        else:
            target.set_result(source.result())
