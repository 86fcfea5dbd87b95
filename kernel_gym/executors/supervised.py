"""A supervised pool: it may lose workers but never an evaluation.

Workers are made when there is work, up to a limit, and replaced if they crash or exceed the
deadline. What happens to an evaluation:

- It goes to a worker that has started, from which its deadline counts. Workers that wait for room
  on the machine hold up none.
- Every result is final, except `infra`. A kernel that fails is never evaluated again.
- If a worker cannot be made, or the outcome is `infra`, the infrastructure has failed. Another
  worker tries again.
- If a worker dies, the submission is rarely the cause, since it runs in a child of the worker. The
  evaluation is tried once more, but only once, since the submission may have been the cause.
- If a worker exceeds its deadline, the submission may be the cause. It is not tried again.

An evaluation that is not tried again gets the outcome `infra`, which training masks. The pool
continues. If no worker can ever start again, all evaluations end with :class:`ExecutorLost`.

Threads: one supervisor thread starts, finishes and replaces workers. Only it uses `_idle` and
`_starting`, and only it changes `_runs`. The condition `_changed` guards `_queue`, `_done`,
`_begun` and `_closing`, which callers and callbacks of futures change too. A pool of a library does
not fit, because a worker may be a thread, a process with a GPU context, or a Ray actor.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import abstractmethod
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field

from kernel_gym.devices import device_status
from kernel_gym.errors import InputError
from kernel_gym.executors.base import EvaluationRequest, Executor
from kernel_gym.executors.cache import EvaluationCache, Key
from kernel_gym.executors.supervised_worker import SupervisedWorker, kill_lost
from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.records import COMPILER_FAULTS, Evaluation, Outcome, Stage
from kernel_gym.storage.secret import RunSecret

log = logging.getLogger(__name__)
DEADLINE = 1200.0
"""Wall seconds that an evaluation may take. The evaluator's own limits and its guard of the machine
end much earlier."""
RETRIES = 2
"""How often an evaluation is tried again after a failure of the infrastructure."""
LOSSES = 1
"""How often it is tried again after its worker died."""
QUEUE_PER_WORKER = 4
NOTICE_SECONDS = 30.0
"""Seconds between two looks at a pool of which no worker has started."""


class ExecutorLost(InputError):
    """No worker can start any more."""


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
        self._unanswered: dict[Future[Evaluation], _Job] = {}
        self._idle: list[SupervisedWorker] = []
        self._starting: dict[Future[None], tuple[SupervisedWorker, float]] = {}
        self._runs: dict[Future[Evaluation], _Run] = {}
        self._done: deque[Future[Evaluation]] = deque()
        self._begun: deque[Future[None]] = deque()
        self._noted = 0.0
        self._closing = False
        self._thread = threading.Thread(target=self._supervise, name="executor", daemon=True)
        self._thread.start()

    @abstractmethod
    def _make_worker(self) -> SupervisedWorker:
        """Makes a new worker. It raises an exception if the machine cannot provide one now."""

    def _waits_for(self) -> str:
        """The reason why no worker starts, for a line of the log.

        Raises:
            ExecutorLost: None can start any more.
        """
        return "the workers start"

    def _start(self, request: EvaluationRequest) -> Future[Evaluation]:
        job = _Job(request)
        self._room.acquire()
        self._unanswered[job.answer] = job
        job.answer.add_done_callback(self._leave)
        with self._changed:
            if self._closing:
                job.answer.cancel()
                raise RuntimeError(self.trouble or "the executor is closed")
            self._queue.append(job)
            self._changed.notify()
        return job.answer

    def _leave(self, answer: Future[Evaluation]) -> None:
        """Makes room for another evaluation."""
        del self._unanswered[answer]
        self._room.release()

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
        for worker, _ in self._starting.values():
            kill_lost(worker)
        while self._idle:
            self._idle.pop().close()

    def _supervise(self) -> None:
        """Supervises until the pool is closed and idle. An error ends all evaluations with it."""
        try:
            while not (self._closing and not self._runs and not self._queue):
                self._step()
        except BaseException as error:  # told to all who wait
            self._end(error)

    def _end(self, error: BaseException) -> None:
        """Gives up: every evaluation gets the error, and no more are taken."""
        with self._changed:
            self._closing, self.trouble = True, " ".join(str(error).split()) or type(error).__name__
            jobs = list(self._unanswered.values())
            self._queue.clear()
        if not isinstance(error, ExecutorLost):
            log.error("the supervisor of the workers failed", exc_info=error)
        for job in jobs:
            if job.answer.set_running_or_notify_cancel():
                job.answer.set_exception(error)

    def _step(self) -> None:
        """Waits for events and handles them."""
        with self._changed:
            self._changed.wait_for(self._has_work, timeout=self._seconds_left())
            done = [self._runs.pop(self._done.popleft()) for _ in range(len(self._done))]
            begun = [self._begun.popleft() for _ in range(len(self._begun))]
            late = [run for run in self._runs.values() if run.ends <= time.monotonic()]
            for run in late:
                del self._runs[run.future]
        for run in done:
            self._finish(run)
        for run in late:
            self._replace(run, f"no result within {self.deadline:g} s", again=False)
        for future in begun:
            self._welcome(future)
        self._dispatch()
        if self._stuck():
            self._give_up_starts()

    def _has_work(self) -> bool:
        over = self._closing and not self._runs
        return bool(self._done or self._begun or over or self._can_dispatch())

    def _can_dispatch(self) -> bool:
        taken, starting = len(self._runs) + len(self._starting), len(self._starting)
        more = taken < self.workers and starting < len(self._queue)
        return bool(self._queue and (self._idle or more))

    def _stuck(self) -> bool:
        """Whether evaluations wait and no worker has started."""
        return bool(self._queue and self._starting and not self._runs and not self._idle)

    def _seconds_left(self) -> float | None:
        ends = [run.ends for run in self._runs.values()]
        if self._stuck():
            begun = min(since for _, since in self._starting.values())
            ends += [begun + self.deadline, max(begun, self._noted) + NOTICE_SECONDS]
        return max(min(ends) - time.monotonic(), 0.0) if ends else None

    def _dispatch(self) -> None:
        """Gives queued evaluations to idle workers, and makes workers for the others."""
        while self._can_dispatch():
            if self._idle:
                job = self._next()
                if job is not None:
                    self._run(job, self._idle.pop())
                continue
            try:
                worker = self._make_worker()
            except Exception as error:  # of any backend; the job is tried again
                job = self._next()
                if job is not None:
                    self._retry(job, f"a worker could not be made: {error}")
                continue
            self._starting[worker.ready] = worker, time.monotonic()
            if worker.ready.done():
                self._welcome(worker.ready)
            else:
                worker.ready.add_done_callback(self._on_ready)

    def _next(self) -> _Job | None:
        """The next evaluation of the queue that its caller still wants; None without one."""
        with self._changed:
            while self._queue:
                job = self._queue.popleft()
                if not job.answer.cancelled():
                    return job
        return None

    def _run(self, job: _Job, worker: SupervisedWorker) -> None:
        try:
            future = worker.start(job.request)
        except Exception as error:  # of any backend; the run ends with it
            future = Future()
            future.set_exception(error)
        self._runs[future] = _Run(job, worker, future, time.monotonic() + self.deadline)
        future.add_done_callback(self._on_done)

    def _welcome(self, future: Future[None]) -> None:
        """Takes a worker that has started, or replaces one that could not."""
        worker, _ = self._starting.pop(future, (None, 0.0))
        if worker is None:
            return
        error = future.exception()
        if error is None:
            self._idle.append(worker)
            return
        self.replaced += 1
        kill_lost(worker)
        job = self._next()
        if job is not None:
            self._retry(job, f"a worker could not start: {error}")

    def _give_up_starts(self) -> None:
        """Tells why no worker starts; gives up those that exceed the deadline.

        Raises:
            ExecutorLost: None can start any more.
        """
        now = time.monotonic()
        begun = min(since for _, since in self._starting.values())
        if now - max(begun, self._noted) >= min(NOTICE_SECONDS, self.deadline):
            self._noted, why = now, self._waits_for()
            log.warning("%d evaluations wait, no worker has started: %s", len(self._queue), why)
        for future, (worker, since) in list(self._starting.items()):
            if now - since < self.deadline:
                continue
            del self._starting[future]
            kill_lost(worker)
            job = self._next()
            if job is not None:
                why = f"no worker started within {self.deadline:g} s: {self._waits_for()}"
                _answer(job, self._infra(job.request, why))

    def _on_ready(self, future: Future[None]) -> None:
        """Notifies the supervisor that a worker has started, or could not."""
        with self._changed:
            self._begun.append(future)
            self._changed.notify()

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
        if evaluation.outcome is Outcome.INFRA and COMPILER_FAULTS.isdisjoint(evaluation.labels):
            self._replace(run, evaluation.message, again=True, last=evaluation)
        else:
            self._idle.append(run.worker)
            _answer(run.job, evaluation)

    def _replace(self, run: _Run, why: str, again: bool, last: Evaluation | None = None) -> None:
        """Kills the worker of a run. The next evaluation gets a new one."""
        self.replaced += 1
        kill_lost(run.worker)
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
            problem_sha256=request.content,
            outcome=Outcome.INFRA,
            stage=Stage.BUILD,
            message=" ".join(why.split())[:500],
            seed=request.seed,
            secret_sha256="" if request.seed is None else key.secret_sha256,
        )


def _answer(job: _Job, evaluation: Evaluation) -> None:
    if job.answer.set_running_or_notify_cancel():
        job.answer.set_result(evaluation)
