"""Many `KernelOpt-v0` environments whose evaluations run in parallel on an executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from kernel_gym.envs.kernel_opt import KernelOptEnv
from kernel_gym.executors import Executor, default_workers, is_service, make_executor


class KernelOptVectorEnv(gymnasium.vector.VectorEnv[dict[str, Any], tuple[str, ...], np.ndarray]):
    """`num_envs` episodes in lockstep, made by `gymnasium.make_vec("KernelOpt-v0", num_envs=N)`.

    A step evaluates one submission of every episode in parallel. Equal submissions with equal seeds
    are evaluated once. An episode that ends is reset in the same step, so that no action is
    ignored; its last observation and info are in `info["final_obs"]` and `info["final_info"]`. With
    `reset(seed=s)`, environment `i` behaves like a `KernelOpt-v0` after `reset(seed=s + i)`, on any
    executor and with any number of workers. Seeds are mixed with the secret of the environments, or
    with the secret of an open executor.

    If a worker crashes or hangs, its episode has a masked step (`info["masked"]`) and continues.

    Args:
        num_envs: Number of environments.
        executor: `local`, `ray`, `inline`, the address of a service, or an open executor, which
            stays open.
        workers: Most evaluations at the same time; by default one per environment, and at most as
            many as the device takes.
        executor_kwargs: Other arguments of the executor, such as `deadline`.
        render_mode: Must be None.
        **kwargs: As for :class:`~kernel_gym.envs.kernel_opt.KernelOptEnv`.

    Example:
        >>> import gymnasium, kernel_gym
        >>> envs = gymnasium.make_vec("KernelOpt-v0", num_envs=2, task="triton2triton/softmax")
        >>> observations, infos = envs.reset(seed=0)
        >>> observations, rewards, terminated, truncated, infos = envs.step(("no", "kernel"))
        >>> infos["outcome"].tolist()
        ['runtime_error', 'runtime_error']
        >>> envs.close()
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        executor: str | Executor = "local",
        workers: int | None = None,
        executor_kwargs: dict[str, Any] | None = None,
        render_mode: str | None = None,
        **kwargs: Any,
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, found {num_envs}")
        if render_mode is not None:
            raise ValueError(f"render_mode: found {render_mode!r}, expected None")
        if not isinstance(executor, str) and kwargs.get("secret") is not None:
            raise ValueError("an executor that is given has its own secret: give one or the other")
        self.num_envs = num_envs
        self.render_mode = None
        self.envs = [KernelOptEnv(**kwargs) for _ in range(num_envs)]
        first = self.envs[0]
        self._owned = isinstance(executor, str)
        if isinstance(executor, str):
            arguments = {"secret": first.secret, **(executor_kwargs or {})}
            executor = _make(executor, first.device_name, num_envs, workers, arguments)
        self.executor = executor
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = batch_space(first.observation_space, num_envs)
        self.action_space = batch_space(first.action_space, num_envs)
        self._over = [False] * num_envs

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode in every environment.

        Args:
            seed: Seed of the first environment, from which the others count up; or one for each.
            options: As for a single environment; all get the same.

        Returns:
            Batched observations and infos.
        """
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed: found {len(seeds)} seeds, expected {self.num_envs}")
        if seeds[0] is not None:
            self._np_random, self._np_random_seed = gymnasium.utils.seeding.np_random(seeds[0])
        observations: list[dict[str, Any]] = []
        infos: dict[str, Any] = {}
        for i, (env, own) in enumerate(zip(self.envs, seeds, strict=True)):
            observation, info = env.reset(seed=own, options=options)
            observations.append(observation)
            infos = self._add_info(infos, info, i)
        return self._batched(observations), infos

    def step(
        self, actions: Any
    ) -> tuple[dict[str, Any], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Evaluates one submission of every environment, in parallel.

        Args:
            actions: One source text for each environment.

        Returns:
            Batched observations, rewards, terminated, truncated and infos.
        """
        sources = list(iterate(self.action_space, tuple(actions)))
        if len(sources) != self.num_envs:
            raise ValueError(f"actions: found {len(sources)}, expected {self.num_envs}")
        requests = [env.request(source) for env, source in zip(self.envs, sources, strict=True)]
        answers = [self.executor.submit(r.task, r.source, r.seed) for r in requests]
        observations: list[dict[str, Any]] = []
        infos: dict[str, Any] = {}
        rewards = np.zeros(self.num_envs, dtype=np.float64)
        terminated, truncated = np.zeros((2, self.num_envs), dtype=np.bool_)
        for i, (env, source, answer) in enumerate(zip(self.envs, sources, answers, strict=True)):
            observation, rewards[i], over, _, info = env.conclude(source, answer.result())
            terminated[i] = over
            if over:
                last = {"final_obs": observation, "final_info": info}
                observation, info = env.reset()
                info = {**info, **last}
            observations.append(observation)
            infos = self._add_info(infos, info, i)
        return self._batched(observations), rewards, terminated, truncated, infos

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the episodes, and closes the executor if it was made here."""
        for env in self.envs:
            env.close()
        if self._owned:
            self.executor.close()

    def _batched(self, observations: list[dict[str, Any]]) -> dict[str, Any]:
        space = self.single_observation_space
        empty = create_empty_array(space, n=self.num_envs, fn=np.zeros)
        return cast("dict[str, Any]", concatenate(space, observations, cast("Any", empty)))


def _make(
    name: str, device: str, num_envs: int, workers: int | None, arguments: dict[str, Any]
) -> Executor:
    if is_service(name):
        return make_executor(name, **arguments)
    if name != "inline":
        workers = workers or min(num_envs, default_workers(device))
        arguments = {"workers": workers, **arguments}
    return make_executor(name, device=device, **arguments)
