"""The executor with a pool of workers on this machine.

For the simulator the workers are threads, since the work is done in the evaluators' own child
processes. For a GPU they are processes, since the judge itself computes and reads clocks.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from kernel_gym.devices import backend_of
from kernel_gym.evaluator import Caches, Evaluator
from kernel_gym.executors.base import EvaluationRequest
from kernel_gym.executors.cache import EvaluationCache
from kernel_gym.executors.process import ProcessWorker
from kernel_gym.executors.spread import devices_for
from kernel_gym.executors.supervised import DEADLINE, SupervisedExecutor
from kernel_gym.executors.supervised_worker import at_once
from kernel_gym.records import Evaluation
from kernel_gym.storage.secret import RunSecret
from kernel_gym.tasks.task import Task


class LocalExecutor(SupervisedExecutor):
    """Evaluates in parallel on one device of this machine.

    More workers than one GPU takes are spread over all GPUs of its model. Records name the GPU that
    was asked for. `plans` is a folder for the launch plans of simulated devices, see `Evaluator`.

    Example:
        >>> from kernel_gym.executors import make_executor
        >>> with make_executor("local", workers=1, seed=0) as executor:
        ...     evaluation = executor.submit("triton2triton/softmax", "nonsense(").result()
        >>> str(evaluation.outcome)
        'compile_error'
    """

    def __init__(
        self,
        device: str = "auto",
        workers: int = 2,
        seed: int | None = None,
        deadline: float = DEADLINE,
        cache: EvaluationCache | None = None,
        secret: RunSecret | None = None,
        plans: Path | None = None,
    ) -> None:
        self._caches, self._plans = Caches(), plans
        self._placed: list[tuple[str, ProcessWorker]] = []
        super().__init__(device, workers, seed, deadline, cache, secret)

    def _make_worker(self) -> LocalWorker | ProcessWorker:
        if backend_of(self.device).threads:
            evaluator = Evaluator(
                self.device, caches=self._caches, secret=self.secret, plans=self._plans
            )
            return LocalWorker(evaluator)
        self._placed = [(place, worker) for place, worker in self._placed if worker.alive]
        taken = Counter(place for place, _ in self._placed)
        place = min(devices_for(self.device, self.workers), key=taken.__getitem__)
        worker = ProcessWorker(place, self.secret, named=self.device)
        self._placed.append((place, worker))
        return worker


class Evaluates(Protocol):
    """The part of an evaluator that a worker uses."""

    def evaluate(self, task: Task, source: str, seed: int | None) -> Evaluation:
        """Evaluates one submission."""
        ...

    def close(self) -> None:
        """Frees its resources."""
        ...


class LocalWorker:
    """An evaluator in a thread of its own.

    A thread cannot be stopped from outside. A worker that was killed stops after its evaluation, at
    the latest when the evaluator's own limits end it, and then closes its evaluator.

    Args:
        evaluator: The evaluator. The worker closes it.
    """

    def __init__(self, evaluator: Evaluates) -> None:
        self._evaluator, self.ready = evaluator, at_once()
        self._requests: queue.SimpleQueue[tuple[EvaluationRequest, Future[Evaluation]] | None]
        self._requests = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="evaluator", daemon=True)
        self._thread.start()

    def start(self, request: EvaluationRequest) -> Future[Evaluation]:
        """Starts one evaluation."""
        future: Future[Evaluation] = Future()
        self._requests.put((request, future))
        return future

    def close(self) -> None:
        """Stops an idle worker and waits for it."""
        self._requests.put(None)
        self._thread.join()

    def kill(self) -> None:
        """Tells the worker to stop after its evaluation, without waiting for it."""
        self._requests.put(None)

    def _work(self) -> None:
        while (item := self._requests.get()) is not None:
            request, future = item
            try:
                evaluation = self._evaluator.evaluate(request.find(), request.source, request.seed)
            except BaseException as error:  # the waiting caller gets it
                future.set_exception(error)
            else:
                future.set_result(evaluation)
        self._evaluator.close()
