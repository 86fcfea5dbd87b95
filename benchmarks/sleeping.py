"""Simulated load: devices that sleep for the time of an evaluation, to measure the rest at scale.

Everything else is real: the executor with its queue, deadlines and cache, Ray's actors and
messages, records and sources of real size. Only the evaluation is replaced and, on Ray, the process
of each device: one asynchronous actor sleeps for many devices.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kernel_gym.executors.base import Executor
from kernel_gym.executors.cache import EvaluationCache
from kernel_gym.executors.local import LocalExecutor, LocalWorker
from kernel_gym.executors.on_ray import RayExecutor, RayWorker
from kernel_gym.records import Evaluation
from kernel_gym.tasks.task import Task

DEVICES_PER_ACTOR = 128


@dataclass(frozen=True)
class Load:
    """The times and results of evaluations. The submitted source decides which are drawn.

    Attributes:
        seconds: Times to draw from, with equal probability.
        records: Results to draw from.
        device: The name of the simulated device.
    """

    seconds: Sequence[float]
    records: Sequence[Evaluation]
    device: str = "sim:gfx942"

    @property
    def mean(self) -> float:
        """Mean seconds of an evaluation."""
        return sum(self.seconds) / len(self.seconds)

    def draw(self, source: str) -> tuple[float, Evaluation]:
        """Returns the seconds and the result of a submission."""
        number = zlib.crc32(source.encode())
        return self.seconds[number % len(self.seconds)], self.records[number % len(self.records)]


class SleepingEvaluator:
    """An evaluator that sleeps, for one device in a thread."""

    def __init__(self, load: Load) -> None:
        self._load = load

    def evaluate(self, task: Task, source: str, seed: int | None) -> Evaluation:
        """Sleeps, then returns a result."""
        seconds, evaluation = self._load.draw(source)
        time.sleep(seconds)
        return evaluation

    def close(self) -> None:
        """Does nothing."""


class SleepingDevices:
    """An actor that sleeps for many devices at once."""

    def __init__(self, load: Load) -> None:
        self._load = load

    async def evaluate(self, task_id: str, source: str, seed: int | None) -> Evaluation:
        """Sleeps, then returns a result."""
        seconds, evaluation = self._load.draw(source)
        await asyncio.sleep(seconds)
        return evaluation


class SleepingLocalExecutor(LocalExecutor):
    """The local executor with sleeping devices, one thread each."""

    def __init__(self, load: Load, devices: int) -> None:
        self._load = load
        super().__init__(load.device, devices, seed=0, cache=EvaluationCache())

    def _make_worker(self) -> LocalWorker:
        return LocalWorker(SleepingEvaluator(self._load))


class SleepingRayExecutor(RayExecutor):
    """The Ray executor with sleeping devices, one actor for up to 128 devices."""

    def __init__(self, load: Load, devices: int) -> None:
        import ray

        super().__init__(load.device, devices, seed=0, cache=EvaluationCache())
        options: dict[str, Any] = {"num_cpus": 0, "max_concurrency": DEVICES_PER_ACTOR}
        actor = ray.remote(**options)(SleepingDevices)
        count = -(-devices // DEVICES_PER_ACTOR)
        self._actors = [actor.remote(load) for _ in range(count)]
        self._made = 0

    def _make_worker(self) -> RayWorker:
        self._made += 1
        return _SharedWorker(self._actors[self._made % len(self._actors)])


class _SharedWorker(RayWorker):
    """One device of a shared actor, which ends with Ray's session."""

    def kill(self) -> None:
        """Does nothing."""


SLEEPING: dict[str, Callable[[Load, int], Executor]] = {
    "local": SleepingLocalExecutor,
    "ray": SleepingRayExecutor,
}
