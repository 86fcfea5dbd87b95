"""The simplest executor: each evaluation runs in the caller's thread during `submit`."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

from kernel_gym.evaluator import Evaluator
from kernel_gym.executors.base import EvaluationRequest, Executor
from kernel_gym.executors.cache import EvaluationCache
from kernel_gym.records import Evaluation
from kernel_gym.storage.secret import RunSecret


class InlineExecutor(Executor):
    """Evaluates immediately, one at a time. The evaluator's own limits are the only deadline.

    `plans` is a folder for launch plans, see `Evaluator`.

    Example:
        >>> from kernel_gym.executors import make_executor
        >>> with make_executor("inline", seed=0) as executor:
        ...     evaluation = executor.evaluate("triton2triton/softmax", "nonsense(")
        >>> str(evaluation.outcome)
        'compile_error'
    """

    def __init__(
        self,
        device: str = "auto",
        seed: int | None = None,
        cache: EvaluationCache | None = None,
        secret: RunSecret | None = None,
        plans: Path | None = None,
    ) -> None:
        super().__init__(device, seed, cache, secret)
        self.evaluator = Evaluator(self.device, secret=self.secret, plans=plans)

    def _start(self, request: EvaluationRequest) -> Future[Evaluation]:
        future: Future[Evaluation] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(self.evaluator.evaluate(request.find(), request.source, request.seed))
        except Exception as error:  # the waiting caller gets it
            future.set_exception(error)
        return future

    def close(self) -> None:
        """Stops the evaluator's workers."""
        self.evaluator.close()
