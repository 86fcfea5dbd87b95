"""Executors: where evaluations run. Submit them, take the results as they finish, in any order.

Three forms behind one interface (:class:`~kernel_gym.executors.base.Executor`): `inline`, in the
caller's thread; `local`, a pool on this machine; `ray`, actors on a cluster. The records are the
same whichever is used: an executor places evaluations and decides nothing.
"""

from kernel_gym.executors.base import Executor, Request
from kernel_gym.executors.cache import EvaluationCache
from kernel_gym.executors.make import (
    EXECUTORS,
    UnknownExecutor,
    default_workers,
    make_executor,
    require_executor,
)

__all__ = [
    "EXECUTORS",
    "EvaluationCache",
    "Executor",
    "Request",
    "UnknownExecutor",
    "default_workers",
    "make_executor",
    "require_executor",
]
