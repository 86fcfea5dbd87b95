"""`KernelTune-v0`: choose the schedule of a kernel; the same tasks as a classical RL problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded

from kernel_gym.devices import describe, resolve
from kernel_gym.executors.shared import shared_executor
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.rewards import Context, RewardResult, get_reward
from kernel_gym.rewards.terms import log_speed
from kernel_gym.storage.secret import PUBLIC
from kernel_gym.tasks import Split, get_task, get_tuning, train_workloads

MOST_WORKLOADS = 6
"""Rows of an observation; no task has more train workloads."""
FEATURES = ("log10 bytes / 12", "log10 flops / 15", "last log speed", "last share of roofline")


class KernelTuneEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """One schedule a turn; the kernel around it is fixed.

    Action: the position of each parameter's value, `MultiDiscrete` over the task's schedule space
    (`env.unwrapped.tuning.space`). With `flat` it is one number, `Discrete` over all schedules, the
    last parameter's value changing fastest, for algorithms such as DQN that take nothing else.

    Observation: numbers from -1 to 1. Four for each train workload (its bytes and flops on a log
    scale, the last turn's log speed and share of the roofline; 0 before there is one), padded to
    six workloads; then the last turn's correctness, the episode's best log speed, and the share of
    its turns that is used up.

    Reward: as in `KernelOpt-v0`. Unseen workloads and data are drawn from the same seed in every
    turn, so that on the simulator a schedule always earns the same and is evaluated once.

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
        reward: str | Callable[..., Any] = "kernel-opt",
        max_turns: int = 8,
        flat: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """Chooses the task, device and reward by name, so that the spec stays plain data.

        Args:
            task: A Triton task whose problem has a schedule space.
            device: A device name; `auto` takes a GPU when there is one.
            reward: As for `KernelOpt-v0`.
            max_turns: Schedules an episode.
            flat: Take an action as one number.
            render_mode: `ansi`, `human` or None.

        Raises:
            ValueError: A name is unknown or a number out of range.
        """
        if max_turns < 1:
            raise ValueError(f"max_turns must be at least 1, found {max_turns}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            known = ", ".join(self.metadata["render_modes"])
            raise ValueError(f"unknown render_mode {render_mode!r}; known: {known}")
        self.task = get_task(task)
        if self.task.language != "triton":
            raise ValueError(f"task {task!r} is in {self.task.language}, expected one in triton")
        self.tuning = get_tuning(self.task.problem.name)
        self._device_name = resolve(device)
        self._reward = get_reward(reward)
        self._max_turns = max_turns
        self.render_mode = render_mode
        self._sizes = tuple(len(values) for values in self.tuning.space.values())
        schedules = spaces.MultiDiscrete(list(self._sizes))
        self.action_space: Any = spaces.Discrete(math.prod(self._sizes)) if flat else schedules
        size = MOST_WORKLOADS * len(FEATURES) + 3
        self.observation_space = spaces.Box(-1.0, 1.0, (size,), np.float32)
        self._turn: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: Seed of the environment's generator, which nothing is drawn from yet.
            options: None are known.

        Returns:
            The first observation, and an info with the task, the device and the schedule space.

        Raises:
            ValueError: An option was given.
        """
        super().reset(seed=seed)
        if options:
            raise ValueError(f"unknown reset option {sorted(options)[0]!r}; none is known")
        self._turn = 0
        self._best = 0.0
        self._context = Context()
        self._last: tuple[dict[str, int], Evaluation, RewardResult] | None = None
        info = {"task": self.task.id, "device": self._device_name, "space": dict(self.tuning.space)}
        if self.render_mode == "human":
            print(self._text())
        return self._observation(), info

    def step(
        self, action: Sequence[int] | np.ndarray | int
    ) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Evaluates one schedule.

        Args:
            action: The position of each parameter's value, or the number of the schedule.

        Returns:
            Observation, reward, terminated, truncated (never true), and info: `schedule`, `turn`,
            `outcome`, `speedup`, `unseen_speedup`, `masked`, `reward_terms`.

        Raises:
            InvalidAction: The action lies outside the space.
            ResetNeeded: No episode is under way.
        """
        choice = self._choice(action)
        if self._turn is None or self._turn >= self._max_turns:
            raise ResetNeeded("no episode is under way: call reset() first")
        executor = shared_executor(self._device_name, PUBLIC)  # a choice cannot look ahead
        evaluation = executor.evaluate(self.task.id, self.tuning.render(choice.tolist()), seed=0)
        result = self._reward(evaluation, self._context)
        self._context = self._context.after(evaluation)
        self._turn += 1
        self._last = (self.tuning.schedule(choice.tolist()), evaluation, result)
        if evaluation.outcome is Outcome.PASSED:
            self._best = max(self._best, log_speed(evaluation.speedup_low))
        if self.render_mode == "human":
            print(self._text())
        reward = 0.0 if result.value is None else float(result.value)
        return self._observation(), reward, self._turn >= self._max_turns, False, self._info()

    def _choice(self, action: Any) -> np.ndarray:
        """The position of each parameter's value."""
        choice = np.asarray(action, dtype=np.int64)
        flat = isinstance(self.action_space, spaces.Discrete)
        if (choice[()] if flat else choice) not in self.action_space:
            raise InvalidAction(f"expected a choice in {self.action_space}, found {action!r}")
        return np.array(np.unravel_index(choice, self._sizes)) if flat else choice

    def render(self) -> str | None:
        """The last turn as a line: returned in `ansi` mode; `human` mode prints it."""
        return self._text() if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Ends the episode. The evaluator is shared and closes with the process."""
        self._turn = None

    def _observation(self) -> np.ndarray:
        scale = describe(self._device_name).scale
        rows = np.zeros((MOST_WORKLOADS, len(FEATURES)))
        for row, workload in zip(rows, train_workloads(self.task.problem, scale), strict=False):
            row[0] = math.log10(max(self.task.problem.bytes(workload.dims), 1)) / 12
            row[1] = math.log10(max(self.task.problem.flops(workload.dims), 1)) / 15
        if self._last is not None:
            for row, result in zip(rows, self._last[1].by_split(Split.TRAIN), strict=False):
                row[2] = 0.0 if result.speedup is None else log_speed(result.speedup)
                if result.roofline_seconds and result.candidate_seconds:
                    row[3] = result.roofline_seconds / result.candidate_seconds
        passed = self._last is not None and self._last[1].outcome is Outcome.PASSED
        state = (float(passed), self._best, (self._turn or 0) / self._max_turns)
        return np.clip([*rows.ravel(), *state], -1.0, 1.0).astype(np.float32)

    def _info(self) -> dict[str, Any]:
        assert self._last is not None
        schedule, evaluation, result = self._last
        return {
            "task": evaluation.task,
            "schedule": schedule,
            "turn": self._turn,
            "outcome": str(evaluation.outcome),
            "speedup": evaluation.speedup,
            "unseen_speedup": evaluation.unseen_speedup,
            "masked": result.masked,
            "reward_terms": dict(result.terms),
        }

    def _text(self) -> str:
        header = f"{self.task.id}  turn {self._turn} of {self._max_turns}"
        if self._last is None:
            return header
        schedule, evaluation, result = self._last
        value = "masked" if result.value is None else f"{result.value:.3f}"
        chosen = " ".join(f"{name}={value}" for name, value in schedule.items())
        return f"{header}  {chosen}  {evaluation.outcome}  reward {value}"
