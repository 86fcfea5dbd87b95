"""`KernelTune-v0`: choose the schedule of a kernel; the same tasks as a classical RL problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded

from kernel_gym.devices import describe, resolve
from kernel_gym.episodes.episode import Episode
from kernel_gym.episodes.history import passed
from kernel_gym.executors import EvaluationRequest, Executor
from kernel_gym.executors.shared import shared_executor
from kernel_gym.records import Evaluation
from kernel_gym.rewards import get_reward
from kernel_gym.rewards.terms import log_speed
from kernel_gym.storage.secret import PUBLIC, kept_secret
from kernel_gym.tasks import Split, get_task, get_tuning, train_workloads

MAX_WORKLOADS = 6
"""Rows of an observation. No task has more train workloads."""
FEATURES = ("log10 bytes / 12", "log10 flops / 15", "last log speed", "last share of roofline")
"""Columns of an observation: the numbers for each train workload."""


class KernelTuneEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """Each turn chooses one schedule; the rest of the kernel is fixed.

    Action: the index of each parameter's value, `MultiDiscrete` over the task's schedule space
    (`env.unwrapped.tuning.space`). With `flat` it is one number, `Discrete` over all schedules, in
    which the last parameter changes fastest. Algorithms such as DQN need that.

    Observation: 27 numbers from -1 to 1, float32. There are four for each train workload (its bytes
    and flops on a log scale, the log speed and share of the roofline in the last turn, 0 before the
    first turn), padded to six workloads. Then follow whether the last schedule was correct, the
    best log speed of the episode, and the share of turns used.

    Reward: as in `KernelOpt-v0`. Unseen workloads and data come from the same seed in every turn,
    so that on the simulator a schedule always earns the same reward and is evaluated once.

    Example:
        >>> import gymnasium, kernel_gym
        >>> env = gymnasium.make("KernelTune-v0", task="triton2triton/layer_norm")
        >>> env.action_space
        MultiDiscrete([6 4 2])
        >>> observation, info = env.reset(seed=0)
        >>> info["space"]["WARPS"]
        (1, 2, 4, 8)
    """

    metadata = {"render_modes": ["human", "ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        task: str = "triton2triton/layer_norm",
        device: str = "auto",
        reward: str | Callable[..., object] = "kernel-opt",
        max_turns: int = 8,
        flat: bool = False,
        render_mode: str | None = None,
        secret: str | Path | None = None,
        executor: Executor | None = None,
    ) -> None:
        """Takes task, device and reward by name, so that the environment's spec is plain data.

        Args:
            task: A Triton task whose problem has a schedule space.
            device: A device name; `auto` takes a GPU if there is one.
            reward: As for `KernelOpt-v0`.
            max_turns: Schedules per episode.
            flat: Make the action one number.
            render_mode: `ansi`, `human` or None.
            secret: The file of the secret that the seed is mixed with; it is created if absent. By
                default there is none, since a schedule cannot make use of the seed.
            executor: An open executor with a device and a secret of its own, which stays open; by
                default the one that the environments of this process share.

        Raises:
            ValueError: A name is unknown, a number is out of range, or there are two secrets.
            StoreError: The file of the secret is malformed.
        """
        if max_turns < 1:
            raise ValueError(f"max_turns must be at least 1, found {max_turns}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            known = ", ".join(self.metadata["render_modes"])
            raise ValueError(f"unknown render_mode {render_mode!r}; known: {known}")
        self.task = get_task(task)
        if self.task.written_in != "triton":
            raise ValueError(f"task {task!r} is in {self.task.written_in}, expected one in triton")
        self.tuning = get_tuning(self.task.problem.name)
        if executor is not None and secret is not None:
            raise ValueError("an executor has its own secret: give one or the other")
        self.device_name = resolve(device) if executor is None else executor.device
        self.secret = PUBLIC if secret is None else kept_secret(Path(secret))
        """The secret that the seed is mixed with."""
        self._executor = executor
        self._reward = get_reward(reward)
        self._max_turns = max_turns
        self.render_mode = render_mode
        self._sizes = tuple(len(values) for values in self.tuning.space.values())
        schedules = spaces.MultiDiscrete(list(self._sizes))
        self.action_space: gymnasium.Space[Any] = (
            spaces.Discrete(math.prod(self._sizes)) if flat else schedules
        )
        size = MAX_WORKLOADS * len(FEATURES) + 3
        self.observation_space = spaces.Box(-1.0, 1.0, (size,), np.float32)
        self._episode: Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[np.ndarray, dict[str, object]]:
        """Starts an episode.

        Args:
            seed: Seed of the environment's generator, from which nothing is drawn so far.
            options: There are none.

        Returns:
            The first observation, and an info with the task, the device and the schedule space.

        Raises:
            ValueError: An option was given.
        """
        super().reset(seed=seed)
        if options:
            raise ValueError(f"unknown reset option {sorted(options)[0]!r}; none is known")
        self._episode = episode = Episode(self.task)
        self._schedule: dict[str, int] = {}
        info: dict[str, object] = {
            "task": self.task.id,
            "device": self.device_name,
            "space": dict(self.tuning.space),
        }
        if self.render_mode == "human":
            print(self._text())
        return self._observation(episode), info

    def step(
        self, action: Sequence[int] | np.ndarray | int
    ) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        """Evaluates one schedule.

        Args:
            action: The index of each parameter's value, or the number of the schedule.

        Returns:
            Observation, reward, terminated, truncated (never true), and info: `schedule`, `turn`,
            `outcome`, `speedup`, `unseen_speedup`, `masked`, `reward_terms`.

        Raises:
            InvalidAction: The action is outside the space.
            ResetNeeded: No episode is in progress.
        """
        request = self.request(action)
        executor = self._executor or shared_executor(self.device_name, self.secret)
        return self.conclude(
            action, executor.evaluate(request.task, request.source, seed=request.seed)
        )

    def request(self, action: object) -> EvaluationRequest:
        """The evaluation that a step with this action needs, see `KernelOptEnv.request`.

        Raises:
            InvalidAction: The action is outside the space.
            ResetNeeded: No episode is in progress.
        """
        choice = self._choice(action)
        if self._episode is None or len(self._episode.turns) >= self._max_turns:
            raise ResetNeeded("no episode is in progress: call reset() first")
        return EvaluationRequest(self.task.id, self.tuning.render(choice.tolist()), 0)

    def conclude(
        self, action: object, evaluation: Evaluation
    ) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        """Ends the step that :meth:`request` began, with its evaluation.

        Returns:
            The same values as :meth:`step`.
        """
        assert self._episode is not None
        choice = self._choice(action)
        source = self.tuning.render(choice.tolist())
        result = self._reward(evaluation, self._episode.context)
        self._episode = episode = self._episode.after(source, evaluation, result)
        self._schedule = self.tuning.schedule(choice.tolist())
        if self.render_mode == "human":
            print(self._text())
        reward = 0.0 if result.value is None else float(result.value)
        over = len(episode.turns) >= self._max_turns
        return self._observation(episode), reward, over, False, self._info(episode)

    def _choice(self, action: object) -> np.ndarray:
        """The index of each parameter's value."""
        choice = np.asarray(action, dtype=np.int64)
        flat = isinstance(self.action_space, spaces.Discrete)
        if (choice[()] if flat else choice) not in self.action_space:
            raise InvalidAction(f"expected a choice in {self.action_space}, found {action!r}")
        return np.array(np.unravel_index(choice, self._sizes)) if flat else choice

    def render(self) -> str | None:
        """The last turn as a line in `ansi` mode; `human` mode prints it."""
        return self._text() if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Ends the episode. The evaluator is shared and closes with the process."""
        self._episode = None

    def _observation(self, episode: Episode) -> np.ndarray:
        scale = describe(self.device_name).scale
        rows = np.zeros((MAX_WORKLOADS, len(FEATURES)))
        for row, workload in zip(rows, train_workloads(self.task.problem, scale), strict=False):
            row[0] = math.log10(max(self.task.problem.bytes(workload.dims), 1)) / 12
            row[1] = math.log10(max(self.task.problem.flops(workload.dims), 1)) / 15
        last = episode.turns[-1] if episode.turns else None
        if last is not None:
            for row, result in zip(rows, last.evaluation.by_split(Split.TRAIN), strict=False):
                row[2] = 0.0 if result.speedup is None else log_speed(result.speedup)
                if result.roofline_seconds and result.candidate_seconds:
                    row[3] = result.roofline_seconds / result.candidate_seconds
        best = max(0.0, log_speed(episode.best.evaluation.speedup_low)) if episode.best else 0.0
        correct = float(last is not None and passed(last))
        state = (correct, best, len(episode.turns) / self._max_turns)
        return np.clip([*rows.ravel(), *state], -1.0, 1.0).astype(np.float32)

    def _info(self, episode: Episode) -> dict[str, object]:
        turn = episode.turns[-1]
        return {
            "task": turn.evaluation.task,
            "schedule": self._schedule,
            "turn": len(episode.turns),
            "outcome": str(turn.evaluation.outcome),
            "speedup": turn.evaluation.speedup,
            "unseen_speedup": turn.evaluation.unseen_speedup,
            "masked": turn.reward.masked,
            "reward_terms": dict(turn.reward.terms),
        }

    def _text(self) -> str:
        turns = self._episode.turns if self._episode else ()
        header = f"{self.task.id}  turn {len(turns)} of {self._max_turns}"
        if not turns:
            return header
        value = turns[-1].reward.value
        reward = "masked" if value is None else f"{value:.3f}"
        chosen = " ".join(f"{name}={value}" for name, value in self._schedule.items())
        return f"{header}  {chosen}  {turns[-1].evaluation.outcome}  reward {reward}"
