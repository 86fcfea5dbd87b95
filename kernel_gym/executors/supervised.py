"""A supervised pool: it may lose workers but never an evaluation.

Workers are made when there is work, up to a limit, and replaced if they crash or exceed the
deadline. What happens to an evaluation:

- Every result is final, except `infra`. A kernel that fails is never evaluated again.
- If a worker cannot be made, or the outcome is `infra`, the infrastructure has failed. Another
  worker tries again.
- If a worker dies, the submission is rarely the cause, since it runs in a child of the worker. The
  evaluation is tried once more, but only once, since the submission may have been the cause.
- If a worker exceeds its deadline, the submission may be the cause. It is not tried again.

An evaluation that is not tried again gets the outcome `infra`, which training masks. The pool goes
on.

Threads: one supervisor thread starts, finishes and replaces workers. Only it uses `_idle`, and only
it changes `_runs`. The condition `_changed` guards `_queue`, `_done` and `_closing`, which callers
and callbacks of futures change too. A pool of a library does not fit, because a worker may be a
thread, a process with a GPU context, or a Ray actor.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from kernel_gym.devices import device_status
from kernel_gym.executors.base import EvaluationRequest, Executor
from kernel_gym.executors.cache import EvaluationCache, Key
from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.records import COMPILER_RACE, Evaluation, Outcome, Stage
from kernel_gym.storage.secret import RunSecret

DEADLINE = 1200.0
"""Wall seconds that an evaluation may take. The evaluator's own limits and its guard of the machine
end much earlier."""
RETRIES = 2
"""How often an evaluation is tried again after a failure of the infrastructure."""
LOSSES = 1
"""How often it is tried again after its worker died."""
QUEUE_PER_WORKER = 4


class SupervisedWorker(Protocol):
    """Evaluates one submission at a time."""

    def start(self, request: EvaluationRequest) -> Future[Evaluation]:
        """Starts one evaluation. An exception of the future means that the worker is lost."""
        ...

    def close(self) -> None:
        """Stops an idle worker."""
        ...

    def kill(self) -> None:
        """Stops a worker immediately, even during an evaluation."""
        ...


class InfraFault(Exception):
    """A worker was lost, and the submission cannot be the cause. It is tried again."""


@dataclass(eq=False)
class _Job:
    request: EvaluationRequest
    answer: Future[Evaluation] = field(default_factory=Future)
    retries: int = RETRIES
    losses: int = LOSSES


@dataclass(eq=False)
class _Run:
    job: _Job
    worker: SupervisedWorker
    future: Future[Evaluation]
    ends: float


class SupervisedExecutor(Executor):
    """Gives requests to workers and supervises the workers from its own thread.

    Args:
        device: A device name.
        workers: The most evaluations at one time.
        seed: The seed of submissions that have none.
        deadline: Seconds that an evaluation may take before its worker is replaced.
        cache: A cache that the executors of a run share.
        secret: The secret of the run, mixed into every draw; by default the secret of this process,
            see :class:`~kernel_gym.evaluator.Evaluator`.
    """

    def __init__(
        self,
        device: str = "auto",
        workers: int = 2,
        seed: int | None = None,
        deadline: float = DEADLINE,
        cache: EvaluationCache | None = None,
        secret: RunSecret | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers must be at least 1, found {workers}")
        super().__init__(device, seed, cache, secret)
        self.workers, self.deadline = workers, deadline
        self.replaced = 0
        """Number of workers lost so far."""
        self.room = workers * (1 + QUEUE_PER_WORKER)
        self._room = threading.BoundedSemaphore(self.room)
        self._changed = threading.Condition()
        self._queue: deque[_Job] = deque()
        self._idle: list[SupervisedWorker] = []
        self._runs: dict[Future[Evaluation], _Run] = {}
        self._done: deque[Future[Evaluation]] = deque()
        self._closing = False
        self._thread = threading.Thread(target=self._supervise, name="executor", daemon=True)
        self._thread.start()

    @abstractmethod
    def _make_worker(self) -> SupervisedWorker:
        """Makes a new worker. It raises an exception if the machine cannot provide one now."""

    def _start(self, request: EvaluationRequest) -> Future[Evaluation]:
        job = _Job(request)
        self._room.acquire()
        job.answer.add_done_callback(lambda answer: self._room.release())
        with self._changed:
            if self._closing:
                job.answer.cancel()
                raise RuntimeError("the executor is closed")
            self._queue.append(job)
            self._changed.notify()
        return job.answer

    def close(self) -> None:
        """Cancels queued evaluations, waits for running ones, and stops the workers."""
        with self._changed:
            self._closing = True
            dropped = list(self._queue)
            self._queue.clear()
            self._changed.notify()
        for job in dropped:
            job.answer.cancel()
        self._thread.join()
        while self._idle:
            self._idle.pop().close()

    def _supervise(self) -> None:
        """Waits for events and handles them, until the pool is closed and idle."""
        while True:
            with self._changed:
                self._changed.wait_for(self._has_work, timeout=self._seconds_left())
                done = [self._runs.pop(self._done.popleft()) for _ in range(len(self._done))]
                late = [run for run in self._runs.values() if run.ends <= time.monotonic()]
                for run in late:
                    del self._runs[run.future]
            for run in done:
                self._finish(run)
            for run in late:
                self._replace(run, f"no result within {self.deadline:g} s", again=False)
            self._dispatch()
            if self._closing and not self._runs and not self._queue:
                return

    def _has_work(self) -> bool:
        free = len(self._runs) < self.workers
        return bool(self._done or (self._queue and free) or (self._closing and not self._runs))

    def _seconds_left(self) -> float | None:
        ends = min((run.ends for run in self._runs.values()), default=None)
        return None if ends is None else max(ends - time.monotonic(), 0.0)

    def _dispatch(self) -> None:
        """Starts queued evaluations until all workers are busy."""
        while self._queue and len(self._runs) < self.workers:
            with self._changed:
                if not self._queue:
                    return
                job = self._queue.popleft()
            if job.answer.cancelled():
                continue
            try:
                worker = self._idle.pop() if self._idle else self._make_worker()
                future = worker.start(job.request)
            except Exception as error:
                self._retry(job, f"a worker could not be made: {error}")
                continue
            run = _Run(job, worker, future, time.monotonic() + self.deadline)
            self._runs[future] = run
            future.add_done_callback(self._on_done)

    def _on_done(self, future: Future[Evaluation]) -> None:
        """Notifies the supervisor, unless it has already replaced the worker."""
        with self._changed:
            if future in self._runs:
                self._done.append(future)
                self._changed.notify()

    def _finish(self, run: _Run) -> None:
        """Handles a run that ended by itself."""
        error = run.future.exception()
        if error is not None:
            again = isinstance(error, InfraFault) or run.job.losses > 0
            run.job.losses -= not isinstance(error, InfraFault)
            self._replace(run, f"the worker was lost: {error}", again)
            return
        evaluation = run.future.result()
        if evaluation.outcome is Outcome.INFRA and COMPILER_RACE not in evaluation.labels:
            self._replace(run, evaluation.message, again=True, last=evaluation)
        else:
            self._idle.append(run.worker)
            _answer(run.job, evaluation)

    def _replace(self, run: _Run, why: str, again: bool, last: Evaluation | None = None) -> None:
        """Kills the worker of a run. The next evaluation gets a new one."""
        self.replaced += 1
        run.worker.kill()
        if again:
            self._retry(run.job, why, last)
        else:
            _answer(run.job, self._infra(run.job.request, why))

    def _retry(self, job: _Job, why: str, last: Evaluation | None = None) -> None:
        if job.retries < 1 or self._closing:
            _answer(job, last or self._infra(job.request, why))
            return
        job.retries -= 1
        with self._changed:
            self._queue.append(job)

    def _infra(self, request: EvaluationRequest, why: str) -> Evaluation:
        seed = 0 if request.seed is None else request.seed
        key = Key.of(request.task, request.source, self.device, seed, self.secret)
        return Evaluation(
            protocol_version=PROTOCOL_VERSION,
            task=request.task,
            device=self.device,
            clock=device_status(self.device).clock,
            source_sha256=key.source_sha256,
            outcome=Outcome.INFRA,
            stage=Stage.BUILD,
            message=" ".join(why.split())[:500],
            seed=request.seed,
            secret_sha256="" if request.seed is None else key.secret_sha256,
        )


def _answer(job: _Job, evaluation: Evaluation) -> None:
    if job.answer.set_running_or_notify_cancel():
        job.answer.set_result(evaluation)
