"""Evaluations on a Ray cluster. Ray only places actors; each holds a whole evaluator.

The candidate runs in a child of the actor with its own limits, so that a kernel that faults does
not cost the actor. An actor that dies or hangs all the same is killed and replaced by a new one,
which is more predictable than Ray's restarts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from kernel_gym.devices import backend_of, resolve
from kernel_gym.executors.base import Request
from kernel_gym.executors.cache import EvaluationCache
from kernel_gym.executors.supervised import DEADLINE, OurFault, SupervisedExecutor
from kernel_gym.records import Evaluation
from kernel_gym.storage.secret import RunSecret

NODE_LOST = "node has died"
MOST_PER_GPU = 8
"""Actors that share a GPU at most. Its memory must hold them: 140 GB do, for a GPU of 80 GB
`resources` should say `{"num_gpus": 0.25}`."""


class RayExecutor(SupervisedExecutor):
    """Evaluates in Ray actors.

    On the simulator an actor takes one CPU. On a GPU it takes a share of one, since most of an
    evaluation is compiling: the actors of a GPU wait for each other by its lock, and timing has it
    alone.

    Args:
        device: A device name, as the nodes know it.
        workers: Actors, at most.
        seed: For submissions without one of their own.
        deadline: Seconds an evaluation may take before its actor is replaced; waiting for a place
            in the cluster counts.
        cache: Shared with other executors of a run.
        arch: Place actors only on nodes with this custom resource, such as `gfx942`, for clusters
            of several architectures: start a node of eight with `--resources='{"gfx942": 8}'`.
        address: The cluster; by default the one that this process is connected to already, else
            the one of `RAY_ADDRESS`, else a new one on this machine.
        resources: What an actor takes, instead of the above: `num_cpus`, `num_gpus` and more of
            Ray's actor options.
        secret: Of the run; actors get it, their workers do not.
    """

    def __init__(
        self,
        device: str = "auto",
        workers: int = 2,
        seed: int | None = None,
        deadline: float = DEADLINE,
        cache: EvaluationCache | None = None,
        arch: str | None = None,
        address: str | None = None,
        resources: Mapping[str, Any] | None = None,
        secret: RunSecret | None = None,
    ) -> None:
        import ray

        device = resolve(device)
        self._owns_ray = not ray.is_initialized()
        if self._owns_ray:
            ray.init(address=address, include_dashboard=False, log_to_driver=False)
        options: dict[str, Any] = {"num_cpus": 1}
        if backend_of(device).ray_gpus:
            options["num_gpus"] = gpu_share(workers, ray.cluster_resources().get("GPU", 0))
        if arch is not None:
            options["resources"] = {arch: options.get("num_gpus", 1)}
        options = {**options, **(resources or {}), "max_restarts": 0, "max_task_retries": 0}
        self._actor = ray.remote(**options)(RayEvaluator)
        super().__init__(device, workers, seed, deadline, cache, secret)

    def _make_worker(self) -> RayWorker:
        return RayWorker(self._actor.remote(self.device, self.secret))

    def close(self) -> None:
        """Drops what is queued, waits for what runs, ends the actors."""
        import ray

        super().close()
        if self._owns_ray:
            ray.shutdown()


def gpu_share(workers: int, gpus: float) -> float:
    """The share of a GPU that spreads actors evenly, since Ray fills one GPU before the next.

    Args:
        workers: actors.
        gpus: that the cluster has now; 0 where they are still to come.

    Returns:
        A multiple of 1/10000, in which Ray counts.
    """
    a_gpu = min(MOST_PER_GPU, math.ceil(workers / gpus)) if gpus else MOST_PER_GPU
    return math.floor(1e4 / a_gpu) / 1e4


class RayEvaluator:
    """The actor: an evaluator with its caches.

    Args:
        device: A device name.
        secret: Of the run.
    """

    def __init__(self, device: str, secret: RunSecret) -> None:
        from kernel_gym.evaluator import Evaluator

        self._evaluator = Evaluator(device, secret=secret)

    def evaluate(self, task_id: str, source: str, seed: int | None) -> Evaluation:
        """Evaluates one submission."""
        from kernel_gym.tasks.registry import get_task

        return self._evaluator.evaluate(get_task(task_id), source, seed)


class RayWorker:
    """One actor, seen from the driver.

    Args:
        actor: Its handle.
    """

    def __init__(self, actor: Any) -> None:
        self.actor = actor

    def start(self, request: Request) -> Future[Evaluation]:
        """Begins one."""
        answer: Future[Evaluation] = Future()
        reference = self.actor.evaluate.remote(request.task, request.source, request.seed)
        reference.future().add_done_callback(lambda found: _pass_on(found, answer))
        return answer

    def close(self) -> None:
        """Ends the actor."""
        self.kill()

    def kill(self) -> None:
        """Ends the actor and its children at once."""
        import ray

        ray.kill(self.actor)


def _pass_on(found: Future[Evaluation], answer: Future[Evaluation]) -> None:
    """Tells a node that was lost, a fault of ours, from an actor that was."""
    error = found.exception()
    if error is None:
        answer.set_result(found.result())
    elif NODE_LOST in str(error):
        answer.set_exception(OurFault(str(error)))
    else:
        answer.set_exception(error)
