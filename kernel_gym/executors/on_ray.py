"""Evaluations on a Ray cluster. Ray only places actors; each holds a whole evaluator.

The candidate runs in a child of the actor with its own limits, so that a kernel that faults does
not cost the actor. An actor that dies or hangs all the same is killed and replaced by a new one,
which is more predictable than Ray's restarts.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from kernel_gym.devices import resolve
from kernel_gym.executors.base import Request
from kernel_gym.executors.cache import EvaluationCache
from kernel_gym.executors.supervised import DEADLINE, OurFault, SupervisedExecutor
from kernel_gym.records import Evaluation

NODE_LOST = "node has died"
GPU_SHARE = 0.125
"""Of a GPU that an actor takes. Its memory must hold eight evaluators then: 140 GB do, for a GPU of
80 GB `resources` should say 0.25."""


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
    ) -> None:
        import ray

        device = resolve(device)
        self._owns_ray = not ray.is_initialized()
        if self._owns_ray:
            ray.init(address=address, include_dashboard=False, log_to_driver=False)
        options: dict[str, Any] = {"num_cpus": 1}
        if not device.startswith("sim:"):
            options["num_gpus"] = GPU_SHARE
        if arch is not None:
            options["resources"] = {arch: options.get("num_gpus", 1)}
        options = {**options, **(resources or {}), "max_restarts": 0, "max_task_retries": 0}
        self._actor = ray.remote(**options)(RayEvaluator)
        super().__init__(device, workers, seed, deadline, cache)

    def _make_worker(self) -> RayWorker:
        return RayWorker(self._actor.remote(self.device))

    def close(self) -> None:
        """Drops what is queued, waits for what runs, ends the actors."""
        import ray

        super().close()
        if self._owns_ray:
            ray.shutdown()


class RayEvaluator:
    """The actor: an evaluator with its caches.

    Args:
        device: A device name.
    """

    def __init__(self, device: str) -> None:
        from kernel_gym.evaluator import Evaluator

        self._evaluator = Evaluator(device)

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
