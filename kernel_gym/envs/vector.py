"""Many environments whose evaluations run in parallel on an executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from kernel_gym.envs.kernel_opt import KernelOptEnv
from kernel_gym.envs.kernel_tune import KernelTuneEnv
from kernel_gym.executors import Executor, default_workers, is_service, make_executor


class ExecutorVectorEnv(gymnasium.vector.VectorEnv[object, Iterable[object], np.ndarray]):
    """`num_envs` episodes side by side, whose evaluations share an executor.

    A step evaluates one submission of every episode in parallel. Equal submissions with equal seeds
    are evaluated once. With `reset(seed=s)`, environment `i` behaves like a single one after
    `reset(seed=s + i)`, on any executor and with any number of workers. Seeds are mixed with the
    secret of the environments, or with the secret of an open executor.

    If a worker crashes or hangs, its episode has a masked step (`info["masked"]`) and continues.

    Args:
        env: Makes one environment.
        num_envs: Number of environments.
        executor: `local`, `ray`, `inline`, the address of a service, or an open executor, which
            stays open.
        workers: Most evaluations at the same time; by default one per environment, and at most as
            many as the device takes.
        executor_kwargs: Other arguments of the executor, such as `deadline`.
        render_mode: Must be None.
        autoreset_mode: `SAME_STEP` resets an episode in the step that ends it, so that no action is
            ignored; its last observation and info are in `info["final_obs"]` and
            `info["final_info"]`. With `DISABLED` the caller resets it, by `reset_mask`. Gymnasium's
            `NEXT_STEP` would throw a submission of each episode away and is refused.
        **kwargs: As for the environment.

    Raises:
        ValueError: An argument is out of range.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        env: Callable[..., KernelOptEnv | KernelTuneEnv],
        num_envs: int = 1,
        executor: str | Executor = "local",
        workers: int | None = None,
        executor_kwargs: dict[str, object] | None = None,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        **kwargs: object,
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, found {num_envs}")
        if render_mode is not None:
            raise ValueError(f"render_mode: found {render_mode!r}, expected None")
        if not isinstance(executor, str) and kwargs.get("secret") is not None:
            raise ValueError("an executor that is given has its own secret: give one or the other")
        mode = AutoresetMode(autoreset_mode)
        if mode is AutoresetMode.NEXT_STEP:
            raise ValueError(f"autoreset_mode: found {mode.value}, expected SameStep or Disabled")
        self.metadata = {**self.metadata, "autoreset_mode": mode}
        self._resets = mode is AutoresetMode.SAME_STEP
        self.num_envs = num_envs
        self.render_mode = None
        self.envs = [env(**kwargs) for _ in range(num_envs)]
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
        self._last: list[object] = [None] * num_envs
        """The last observation of each environment."""

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, object] | None = None,
    ) -> tuple[dict[str, object], dict[str, object]]:
        """Starts an episode in every environment, or in some of them.

        Args:
            seed: Seed of the first environment, from which the others count up; or one for each.
            options: As for a single environment; all get the same. `reset_mask`, an array of
                `num_envs` booleans, says which environments are reset.

        Returns:
            Batched observations, the last one of those not reset, and infos of those reset.

        Raises:
            ValueError: There are too few seeds, or the mask is not as described.
            ResetNeeded: A mask leaves an environment out that was never reset.
        """
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed: found {len(seeds)} seeds, expected {self.num_envs}")
        if seeds[0] is not None:
            self._np_random, self._np_random_seed = gymnasium.utils.seeding.np_random(seeds[0])
        options = dict(options or {})
        mask = self._mask(options.pop("reset_mask", None))
        infos: dict[str, object] = {}
        for i in np.flatnonzero(mask).tolist():
            self._last[i], info = self.envs[i].reset(seed=seeds[i], options=options)
            infos = self._add_info(infos, info, i)
        return self._batched(), infos

    def _mask(self, mask: object) -> np.ndarray:
        """Which environments a reset concerns."""
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        given = np.asarray(mask)
        if given.shape != (self.num_envs,) or given.dtype != np.bool_ or not given.any():
            raise ValueError(
                f"reset_mask: found {mask!r}, expected {self.num_envs} booleans, at least one true"
            )
        if any(last is None for last in np.array(self._last, dtype=object)[~given]):
            raise ResetNeeded("an environment was never reset: call reset() without a mask first")
        return given

    def call(self, name: str, *args: object, **kwargs: object) -> tuple[object, ...]:
        """The results of a method of each environment, or the values of an attribute."""
        values = [env.get_wrapper_attr(name) for env in self.envs]
        return tuple(v(*args, **kwargs) if callable(v) else v for v in values)

    def get_attr(self, name: str) -> tuple[object, ...]:
        """The value of an attribute in each environment."""
        return self.call(name)

    def set_attr(self, name: str, values: object) -> None:
        """Sets an attribute in each environment: to one value, or to one of a list for each.

        Raises:
            ValueError: The list has another length.
        """
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(f"values: found {len(values)}, expected {self.num_envs}")
        for env, value in zip(self.envs, values, strict=True):
            env.set_wrapper_attr(name, value)

    def step(
        self, actions: Iterable[object]
    ) -> tuple[dict[str, object], np.ndarray, np.ndarray, np.ndarray, dict[str, object]]:
        """Evaluates one submission of every environment, in parallel.

        Args:
            actions: One action for each environment.

        Returns:
            Batched observations, rewards, terminated, truncated and infos.
        """
        sources = self._split(actions)
        if len(sources) != self.num_envs:
            raise ValueError(f"actions: found {len(sources)}, expected {self.num_envs}")
        requests = [env.request(source) for env, source in zip(self.envs, sources, strict=True)]
        answers = [self.executor.submit(r.task, r.source, r.seed) for r in requests]
        infos: dict[str, object] = {}
        rewards = np.zeros(self.num_envs, dtype=np.float64)
        terminated, truncated = np.zeros((2, self.num_envs), dtype=np.bool_)
        for i, (env, source, answer) in enumerate(zip(self.envs, sources, answers, strict=True)):
            observation, rewards[i], over, _, info = env.conclude(source, answer.result())
            terminated[i] = over
            if over and self._resets:
                last = {"final_obs": observation, "final_info": info}
                observation, info = env.reset()
                info = {**info, **last}
            self._last[i] = observation
            infos = self._add_info(infos, info, i)
        return self._batched(), rewards, terminated, truncated, infos

    def close_extras(self, **kwargs: object) -> None:
        """Ends the episodes, and closes the executor if it was made here."""
        for env in self.envs:
            env.close()
        if self._owned:
            self.executor.close()

    def _split(self, actions: Iterable[object]) -> list[Any]:
        """The action of each environment."""
        return list(iterate(self.action_space, tuple(actions)))

    def _batched(self) -> Any:
        space = self.single_observation_space
        empty = create_empty_array(space, n=self.num_envs, fn=np.zeros)
        return concatenate(space, self._last, cast("Any", empty))


class KernelOptVectorEnv(ExecutorVectorEnv):
    """Many episodes of `KernelOpt-v0`: `gymnasium.make_vec("KernelOpt-v0", num_envs=N)`.

    Args:
        num_envs: Number of environments.
        **kwargs: As for :class:`ExecutorVectorEnv` and
            :class:`~kernel_gym.envs.kernel_opt.KernelOptEnv`.

    Example:
        >>> import gymnasium, kernel_gym
        >>> envs = gymnasium.make_vec("KernelOpt-v0", num_envs=2, task="triton2triton/softmax")
        >>> observations, infos = envs.reset(seed=0)
        >>> observations, rewards, terminated, truncated, infos = envs.step(("no", "kernel"))
        >>> infos["outcome"].tolist()
        ['runtime_error', 'runtime_error']
        >>> envs.close()
    """

    def __init__(self, num_envs: int = 1, **kwargs: Any) -> None:
        super().__init__(KernelOptEnv, num_envs, **kwargs)


class KernelTuneVectorEnv(ExecutorVectorEnv):
    """Many episodes of `KernelTune-v0`: `gymnasium.make_vec("KernelTune-v0", num_envs=N)`.

    Args:
        num_envs: Number of environments.
        **kwargs: As for :class:`ExecutorVectorEnv` and
            :class:`~kernel_gym.envs.kernel_tune.KernelTuneEnv`.
    """

    def __init__(self, num_envs: int = 1, **kwargs: Any) -> None:
        super().__init__(KernelTuneEnv, num_envs, **kwargs)

    def _split(self, actions: Iterable[object]) -> list[object]:
        return list(np.asarray(actions))


def _make(
    name: str, device: str, num_envs: int, workers: int | None, arguments: dict[str, object]
) -> Executor:
    if is_service(name):
        return make_executor(name, **arguments)
    if name != "inline":
        workers = workers or min(num_envs, default_workers(device))
        arguments = {"workers": workers, **arguments}
    return make_executor(name, device=device, **arguments)
