"""The figures of `/metrics`, in the format of Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kernel_gym.records import Evaluation
from kernel_gym.service.jobs import Job

SECONDS = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)


class Metrics:
    """The figures of one service.

    Args:
        queued: Returns the number of queued submissions.
        running: Returns the number of submissions that the executor has.
        workers: Most evaluations at the same time.
    """

    def __init__(
        self, queued: Callable[[], float], running: Callable[[], float], workers: int
    ) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "kernel_gym_requests", "Requests by status.", ["status"], registry=registry
        )
        self._evaluations = Counter(
            "kernel_gym_evaluations", "Evaluations by outcome.", ["outcome"], registry=registry
        )
        self._failed = Counter(
            "kernel_gym_failures", "Submissions that the service failed on.", registry=registry
        )
        self._waited = Histogram(
            "kernel_gym_queue_seconds", "Seconds in the queue.", buckets=SECONDS, registry=registry
        )
        self._took = Histogram(
            "kernel_gym_evaluation_seconds",
            "Seconds in the executor.",
            buckets=SECONDS,
            registry=registry,
        )
        Gauge("kernel_gym_queued", "Queued.", registry=registry).set_function(queued)
        Gauge("kernel_gym_running", "In the executor.", registry=registry).set_function(running)
        Gauge("kernel_gym_workers", "Workers.", registry=registry).set(workers)

    def finished(self, job: Job, evaluation: Evaluation) -> None:
        """Counts an evaluation."""
        started = job.started_at or job.queued_at
        self._evaluations.labels(str(evaluation.outcome)).inc()
        self._waited.observe(max(started - job.queued_at, 0.0))
        self._took.observe(max(time.time() - started, 0.0))

    def failed(self) -> None:
        """Counts a failure of the service."""
        self._failed.inc()

    def text(self) -> bytes:
        """The figures as text."""
        return generate_latest(self._registry)
