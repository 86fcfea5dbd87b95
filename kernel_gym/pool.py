"""A local pool of evaluators: threads here, since the work is in the workers' processes."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from kernel_gym.evaluator import Caches, Evaluator
from kernel_gym.records import Evaluation
from kernel_gym.tasks.registry import get_task


class EvaluatorPool:
    """Evaluates submissions in parallel on one device of this machine.

    Args:
        device: a device name.
        workers: evaluations at one time.
        seed: as for :class:`~kernel_gym.evaluator.Evaluator`.

    Example:
        >>> from kernel_gym.pool import EvaluatorPool
        >>> with EvaluatorPool(workers=1, seed=0) as pool:
        ...     evaluation = pool.submit("triton2triton/softmax", "nonsense(").result()
        >>> str(evaluation.outcome)
        'compile_error'
    """

    def __init__(self, device: str = "auto", workers: int = 2, seed: int | None = None) -> None:
        self._arguments = (device, seed, Caches())
        self._own = threading.local()
        self._evaluators: list[Evaluator] = []
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="evaluator")

    def submit(self, task_id: str, source: str, seed: int | None = None) -> Future[Evaluation]:
        """Queues a submission; the future's result is its record."""
        return self._threads.submit(self._evaluate, task_id, source, seed)

    def close(self) -> None:
        """Drops what is queued, waits for what runs, ends the workers."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        for evaluator in self._evaluators:
            evaluator.close()

    def __enter__(self) -> EvaluatorPool:
        """The pool itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes it."""
        self.close()

    def _evaluate(self, task_id: str, source: str, seed: int | None) -> Evaluation:
        if not hasattr(self._own, "evaluator"):
            self._own.evaluator = Evaluator(*self._arguments)
            self._evaluators.append(self._own.evaluator)
        return self._own.evaluator.evaluate(get_task(task_id), source, seed)
