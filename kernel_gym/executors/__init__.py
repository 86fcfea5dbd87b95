"""Executors run evaluations side by side and return the results as they finish.

There are four behind one interface (:class:`~kernel_gym.executors.base.Executor`): `inline` in the
caller's thread, `local` with a pool on this machine, `ray` with actors on a cluster, and the URL
of a service (`kernel-gym serve`). All give the same records: an executor places evaluations and
decides nothing.
"""

from kernel_gym.executors.base import EvaluationRequest, Executor
from kernel_gym.executors.cache import EvaluationCache
from kernel_gym.executors.make import (
    EXECUTORS,
    UnknownExecutor,
    default_workers,
    is_service,
    make_executor,
    require_executor,
)

__all__ = [
    "EXECUTORS",
    "EvaluationCache",
    "EvaluationRequest",
    "Executor",
    "UnknownExecutor",
    "default_workers",
    "is_service",
    "make_executor",
    "require_executor",
]
