"""The executor on a Ray cluster. Ray only places actors. Each actor holds a whole evaluator.

The candidate runs in a child process of the actor with its own limits, so a kernel that faults does
not end the actor. An actor that dies or hangs is killed and replaced by a new one. This is more
predictable than Ray's own restarts.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from kernel_gym.devices import backend_of, resolve
from kernel_gym.executors.base import EvaluationRequest
from kernel_gym.executors.cache import EvaluationCache
from kernel_gym.executors.supervised import DEADLINE, ExecutorLost, InfraFault, SupervisedExecutor
from kernel_gym.records import Evaluation
from kernel_gym.storage.secret import RunSecret

log = logging.getLogger(__name__)
NODE_LOST = "node has died"
"""The text by which Ray reports a lost node."""
MAX_ACTORS_PER_GPU = 8
"""Most actors that share a GPU. They must fit into its memory: 140 GB are enough. For a GPU of
80 GB set `resources` to `{"num_gpus": 0.25}`."""


class RayExecutor(SupervisedExecutor):
    """Evaluates in Ray actors.

    On the simulator an actor takes one CPU. On a GPU it takes a share of the GPU, since most of an
    evaluation is compilation. The actors of a GPU share it by a lock, and timing has it alone.

    Args:
        device: A device name that the nodes know.
        workers: The most actors.
        seed: The seed of submissions that have none.
        deadline: Seconds that an evaluation may take in an actor before it is replaced, and that
            evaluations wait while no actor has a place in the cluster.
        cache: A cache that the executors of a run share.
        arch: A custom resource such as `gfx942`, for clusters of several architectures. Actors are
            placed only on nodes that have it. Start a node of eight GPUs with
            `--resources='{"gfx942": 8}'`.
        address: The address of the cluster. By default it is the cluster that this process is
            connected to, else that of `RAY_ADDRESS`, else a new one on this machine. `auto` joins
            a cluster that runs on this machine.
        resources: The resources of an actor in place of the above: `num_cpus`, `num_gpus` and other
            actor options of Ray.
        secret: The secret of the run. Actors get it, their workers do not.
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
        resources: Mapping[str, object] | None = None,
        secret: RunSecret | None = None,
    ) -> None:
        import ray

        device = resolve(device)
        self._owns_ray = not ray.is_initialized()
        if self._owns_ray:
            address = address or os.environ.get("RAY_ADDRESS") or "local"
            if address == "local":  # Ray's workers have nice +15 by default
                os.environ.setdefault("RAY_worker_niceness", "0")
            ray.init(address=address, include_dashboard=False, log_to_driver=False)
            if address != "local":
                log.warning("joined the Ray cluster at %s", ray.get_runtime_context().gcs_address)
        options: dict[str, Any] = {"num_cpus": 1}
        if backend_of(device).ray_gpus:
            options["num_gpus"] = gpu_share(workers, ray.cluster_resources().get("GPU", 0))
        if arch is not None:
            options["resources"] = {arch: options.get("num_gpus", 1)}
        options = {**options, **(resources or {}), "max_restarts": 0, "max_task_retries": 0}
        self._actor, self._options = ray.remote(**options)(RayEvaluator), options
        super().__init__(device, workers, seed, deadline, cache, secret)

    def _make_worker(self) -> RayWorker:
        return RayWorker(self._actor.remote(self.device, self.secret))

    def _waits_for(self) -> str:
        """The resources that actors wait for, and those of the cluster.

        Raises:
            ExecutorLost: The cluster has no node any more.
        """
        import ray

        nodes = [node for node in ray.nodes() if node["Alive"]]
        if not nodes:
            raise ExecutorLost("no node of the Ray cluster is left; results so far are on disk")
        names = ("num_cpus", "num_gpus", "resources")
        wanted = {name: self._options[name] for name in names if self._options.get(name)}
        there = {k: v for k, v in ray.cluster_resources().items() if not k.startswith("node:")}
        return f"an actor needs {wanted}, and {len(nodes)} nodes have {there}"

    def close(self) -> None:
        """Cancels queued evaluations, waits for running ones, and ends the actors."""
        import ray

        super().close()
        if self._owns_ray:
            ray.shutdown()


def gpu_share(workers: int, gpus: float) -> float:
    """Returns the share of a GPU that spreads actors evenly. Ray fills one GPU before the next.

    Args:
        workers: The number of actors.
        gpus: The number of GPUs that the cluster has now; 0 if they will be added later.

    Returns:
        A multiple of 1/10000, which is Ray's resolution.
    """
    a_gpu = min(MAX_ACTORS_PER_GPU, math.ceil(workers / gpus)) if gpus else MAX_ACTORS_PER_GPU
    return math.floor(1e4 / a_gpu) / 1e4


class RayEvaluator:
    """The actor, which holds an evaluator and its caches.

    Args:
        device: A device name.
        secret: The secret of the run.
    """

    def __init__(self, device: str, secret: RunSecret) -> None:
        from kernel_gym.evaluator import Evaluator

        self._evaluator = Evaluator(device, secret=secret)

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Evaluates one submission."""
        return self._evaluator.evaluate(request.find(), request.source, request.seed)


class RayWorker:
    """A worker of the supervisor that stands for one actor.

    Args:
        actor: The handle of the actor.
    """

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.ready: Future[None] = actor.__ray_ready__.remote().future()

    def start(self, request: EvaluationRequest) -> Future[Evaluation]:
        """Starts one evaluation."""
        answer: Future[Evaluation] = Future()
        reference = self.actor.evaluate.remote(request)
        reference.future().add_done_callback(lambda future: _copy_result(future, answer))
        return answer

    def close(self) -> None:
        """Ends the actor."""
        self.kill()

    def kill(self) -> None:
        """Kills the actor and its children."""
        import ray

        ray.kill(self.actor)


def _copy_result(future: Future[Evaluation], answer: Future[Evaluation]) -> None:
    """Copies a result or an error. The loss of a node becomes an `InfraFault`."""
    error = future.exception()
    if error is None:
        answer.set_result(future.result())
    elif NODE_LOST in str(error):
        answer.set_exception(InfraFault(str(error)))
    else:
        answer.set_exception(error)
