"""Devices that sleep for as long as an evaluation takes, to see what many of them ask of the rest.

Everything around the devices is real: the executor with its queue, deadlines and cache, Ray's
actors and messages, records and sources of true size. What is stood for is the evaluation alone,
and, on Ray, the process of each device: one asynchronous actor sleeps for many of them.
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
    """How long evaluations take and what they give, drawn by what is submitted.

    Attributes:
        seconds: Times to draw from, each as likely.
        records: Results to draw from.
        device: The device that is stood for.
    """

    seconds: Sequence[float]
    records: Sequence[Evaluation]
    device: str = "sim:gfx942"

    @property
    def mean(self) -> float:
        """Seconds of an evaluation, on average."""
        return sum(self.seconds) / len(self.seconds)

    def draw(self, source: str) -> tuple[float, Evaluation]:
        """The seconds and the result of a submission."""
        number = zlib.crc32(source.encode())
        return self.seconds[number % len(self.seconds)], self.records[number % len(self.records)]


class SleepingEvaluator:
    """Stands for a device in a thread."""

    def __init__(self, load: Load) -> None:
        self._load = load

    def evaluate(self, task: Task, source: str, seed: int | None) -> Evaluation:
        """Sleeps, and gives a result."""
        seconds, found = self._load.draw(source)
        time.sleep(seconds)
        return found

    def close(self) -> None:
        """Does nothing."""


class SleepingDevices:
    """The actor: stands for many devices at once."""

    def __init__(self, load: Load) -> None:
        self._load = load

    async def evaluate(self, task_id: str, source: str, seed: int | None) -> Evaluation:
        """Sleeps, and gives a result."""
        seconds, found = self._load.draw(source)
        await asyncio.sleep(seconds)
        return found


class SleepingLocalExecutor(LocalExecutor):
    """The local executor over sleeping devices, a thread each."""

    def __init__(self, load: Load, devices: int) -> None:
        self._load = load
        super().__init__(load.device, devices, seed=0, cache=EvaluationCache())

    def _make_worker(self) -> LocalWorker:
        return LocalWorker(SleepingEvaluator(self._load))


class SleepingRayExecutor(RayExecutor):
    """The Ray executor over sleeping devices, an actor for up to 128 of them."""

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
    """One device of an actor that stands for others too: it ends with Ray's session."""

    def kill(self) -> None:
        """Does nothing."""


SLEEPING: dict[str, Callable[[Load, int], Executor]] = {
    "local": SleepingLocalExecutor,
    "ray": SleepingRayExecutor,
}
