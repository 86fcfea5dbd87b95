"""Feeds the executor from the queue, and writes results back. One thread does both.

The thread survives every error of the disk and of the database. Results that cannot be written are
kept and written later.

Few submissions are given to the executor ahead of its workers, so that priorities hold and that a
stopped service has little to queue again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue

from kernel_gym.client.wire import State
from kernel_gym.executors import Executor
from kernel_gym.records import Evaluation
from kernel_gym.service.jobs import Job
from kernel_gym.service.metrics import Metrics
from kernel_gym.service.store import Store

log = logging.getLogger(__name__)
KEEP = 7 * 86400.0
"""Seconds for which results are kept."""
DROP_EVERY = 3600.0
RETRY_SECONDS = 5.0
"""Seconds after which a step that failed is repeated, such as while the disk is full."""


class Dispatcher:
    """Evaluates what the store has queued.

    Args:
        store: The queue.
        executor: Evaluates submissions.
        on_change: Called in another thread with the id of each submission that starts or ends.
    """

    def __init__(self, store: Store, executor: Executor, on_change: Callable[[str], None]) -> None:
        self._store, self._executor, self._on_change = store, executor, on_change
        self.metrics = Metrics(lambda: store.queued, lambda: self.running, executor.workers)
        self._running: dict[Future[Evaluation], Job] = {}
        self._events: SimpleQueue[Future[Evaluation] | None] = SimpleQueue()
        self._stopping = False
        self._ended: deque[Future[Evaluation]] = deque()
        """Evaluations whose result is not written yet."""
        self._dropped = time.monotonic()
        self._began = time.time() - self._dropped
        self.trouble = ""
        """Why nothing can be started or written now; empty if all is well."""
        self._ahead = 2 * executor.workers
        self._thread = threading.Thread(target=self._work, name="dispatcher", daemon=True)

    @property
    def running(self) -> int:
        """Number of submissions that the executor has."""
        return len(self._running)

    @property
    def alive(self) -> bool:
        """Whether the thread works."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Says that a submission was queued."""
        self._events.put(None)

    def stop(self) -> None:
        """Starts no more submissions. Returns when those of the executor are done or cancelled.

        Close the executor first: it finishes what runs and cancels what waits.
        """
        self._stopping = True
        self.wake()
        self._thread.join()

    def drain(self) -> None:
        """Starts no more submissions."""
        self._stopping = True

    def _work(self) -> None:
        """Works until the service stops. An error is logged, and the step is repeated."""
        while not self._stopping or self._running:
            try:
                self._step()
            except Exception as error:  # the service outlives every error
                if self._stopping:
                    log.exception("what ran is queued again at the next start")
                    return
                if not self.trouble:
                    log.exception("the dispatcher tries again every %g s", RETRY_SECONDS)
                self.trouble = " ".join(f"{type(error).__name__}: {error}".split())
                self._await(RETRY_SECONDS)

    def _step(self) -> None:
        """Writes what has ended, starts what there is room for, and waits for the next event."""
        while self._ended:
            self._finish(self._ended[0])
            del self._running[self._ended.popleft()]
        while not self._stopping and len(self._running) < self._ahead and self._start_one():
            pass
        if self.trouble:
            log.warning("the dispatcher works again, after %s", self.trouble)
            self.trouble = ""
        if time.monotonic() - self._dropped > DROP_EVERY:
            self._dropped = time.monotonic()
            self._store.drop(self._now() - KEEP)
        if not self._stopping or self._running:
            self._await(None)

    def _await(self, seconds: float | None) -> None:
        """Waits for an event, at most for some seconds."""
        try:
            future = self._events.get(timeout=seconds)
        except Empty:
            return
        if future is not None:
            self._ended.append(future)

    def _now(self) -> float:
        """The time by the clock of the start, so that a clock that is set later drops no result."""
        return self._began + time.monotonic()

    def _start_one(self) -> bool:
        """Gives the next submission to the executor; false if there is none."""
        job = self._store.take()
        if job is None:
            return False
        self._on_change(job.id)
        try:
            future = self._executor.submit(job.task, job.source, job.seed)
        except Exception as error:  # passed on to the job
            future = Future()
            if self._stopping:
                future.cancel()
            else:
                future.set_exception(error)
        self._running[future] = job
        future.add_done_callback(self._events.put)
        return True

    def _finish(self, future: Future[Evaluation]) -> None:
        """Writes the result of an evaluation. It may be called again if that failed."""
        job = self._running[future]
        if future.cancelled():
            self._store.queue_again(job)
            return
        try:
            evaluation = future.result()
            text = evaluation.model_dump_json()
        except Exception as error:  # passed on to the job
            self._fail(job, error)
            return
        if self._store.finish(job, State.DONE, text):
            self.metrics.finished(job, evaluation)
            self._on_change(job.id)

    def _fail(self, job: Job, error: BaseException) -> None:
        """Ends a submission on which the program failed. The log has the traceback."""
        log.error("evaluation %s on %s failed", job.id, job.task, exc_info=error)
        self._store.finish(job, State.FAILED, None, f"{type(error).__name__} in the service")
        self.metrics.failed()
        self._on_change(job.id)
