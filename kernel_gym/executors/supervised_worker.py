"""The workers of a supervised pool."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Protocol

from kernel_gym.executors.base import EvaluationRequest
from kernel_gym.records import Evaluation

log = logging.getLogger(__name__)


class SupervisedWorker(Protocol):
    """Evaluates one submission at a time.

    Attributes:
        ready: Done when the worker has started. Its exception means that it could not.
    """

    ready: Future[None]

    def start(self, request: EvaluationRequest) -> Future[Evaluation]:
        """Starts one evaluation. An exception of the future means that the worker is lost."""
        ...

    def close(self) -> None:
        """Stops an idle worker."""
        ...

    def kill(self) -> None:
        """Stops a worker immediately, even during an evaluation."""
        ...


def at_once() -> Future[None]:
    """The mark of a worker that has started as soon as it is made."""
    ready: Future[None] = Future()
    ready.set_result(None)
    return ready


def kill_lost(worker: SupervisedWorker) -> None:
    """Kills a worker that is lost anyway."""
    try:
        worker.kill()
    except Exception:  # the worker is lost anyway
        log.exception("a lost worker could not be killed")
