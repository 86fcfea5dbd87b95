"""`KernelOpt-v0`: write a GPU kernel, read the feedback, write a better one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded

from kernel_gym.devices import describe, resolve
from kernel_gym.devices.description import DeviceDescription
from kernel_gym.envs.choice import TaskChoice, Tasks
from kernel_gym.envs.spaces import SourceText
from kernel_gym.episodes.episode import Episode
from kernel_gym.episodes.history import speedup_bound
from kernel_gym.executors.shared import shared_executor
from kernel_gym.feedback import MAX_CHARS
from kernel_gym.records import Evaluation
from kernel_gym.rewards import get_reward
from kernel_gym.rewards.terms import FASTEST
from kernel_gym.storage.secret import PUBLIC, RunSecret, kept_secret, process_secret
from kernel_gym.tasks import Task, prompt, train_workloads

DEFAULT_SUITE = "quickstart"


class KernelOptEnv(gymnasium.Env[dict[str, Any], str]):
    """Each episode is about one task, and each turn is one submission.

    Action: the source text of a kernel. Text that is not a kernel is a failed submission. Only an
    action that is not a string raises.

    Observation: `task` (the prompt), `feedback` (on the last submission), `best_source` and
    `best_speedup` (the best correct submission of the episode and the lower bound of its speedup;
    "" and 0 before there is one), `turn` (the number of submissions so far).

    Reward: the reward of this turn's submission, see :mod:`kernel_gym.rewards`. If the machine
    failed and not the candidate, `info["masked"]` is true and the reward is 0.0, because Gymnasium
    needs a number. Leave such a step out of training.

    An episode terminates after `max_turns` submissions. The seeds of unseen workloads and data come
    from the environment's generator, mixed with a secret that a policy cannot know. After
    `reset(seed=...)` an episode on the simulator can be repeated exactly in this process, and in
    another process that gets the same `secret`.

    Example:
        >>> import gymnasium, kernel_gym
        >>> env = gymnasium.make("KernelOpt-v0", task="triton2triton/softmax")
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step("not a kernel")
        >>> info["outcome"]
        'compile_error'
    """

    metadata = {"render_modes": ["human", "ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        task: TaskChoice = DEFAULT_SUITE,
        device: str = "auto",
        reward: str | Callable[..., Any] = "kernel-opt",
        max_turns: int = 3,
        deterministic: bool = False,
        secret: str | Path | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Takes tasks, device and reward by name, so that the environment's spec is plain data.

        Args:
            task: A task id such as `triton2triton/softmax`, a suite to draw tasks from, a list of
                these, or a mapping from these to weights.
            device: A device name such as `sim:gfx942`; `auto` takes a GPU if there is one.
            reward: A registered reward, a `.toml` file, `module:function`, or a callable; see
                :func:`kernel_gym.rewards.get_reward`.
            max_turns: Submissions per episode.
            deterministic: Draw unseen workloads and data from the same seed in every turn, without
                a secret, so that an evaluation depends on the source only. A policy that knows the
                seed can compute all answers, so this is for tests and not for training.
            secret: The file of the secret that seeds are mixed with; it is created if absent. By
                default the environment uses a secret that exists only in this process.
            render_mode: `ansi`, `human` or None.

        Raises:
            ValueError: A name is unknown, a number is out of range, or a deterministic environment
                gets a secret.
            StoreError: The file of the secret is malformed.
        """
        if deterministic and secret is not None:
            raise ValueError("a deterministic environment has no secret: give one or the other")
        if max_turns < 1:
            raise ValueError(f"max_turns must be at least 1, found {max_turns}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            known = ", ".join(self.metadata["render_modes"])
            raise ValueError(f"unknown render_mode {render_mode!r}; known: {known}")
        self.device_name = resolve(device)
        self._device = describe(self.device_name)
        self._arch = self._device.arch
        self._tasks = Tasks(task, self._arch)
        self._deterministic = deterministic
        self.secret = _secret(deterministic, secret)
        """The secret that seeds are mixed with."""
        self._reward = get_reward(reward)
        self._max_turns = max_turns
        self.render_mode = render_mode
        self.action_space = SourceText()
        self.observation_space = spaces.Dict(
            {
                "task": SourceText(),
                "feedback": SourceText(MAX_CHARS),
                "best_source": SourceText(),
                "best_speedup": spaces.Box(0.0, FASTEST, shape=(), dtype=np.float32),
                "turn": spaces.Discrete(max_turns + 1),
            }
        )
        self._episode: Episode | None = None

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The ids of the tasks that `reset` draws from, unless its options name others."""
        return tuple(self._tasks.probabilities)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: Seed of the generator that draws the task, unseen workloads and data.
            options: `{"task": ...}` draws the task of this episode from another choice; a
                curriculum can use it.

        Returns:
            The first observation, and an info with the task and the device.

        Raises:
            ValueError: An option or its task is unknown.
        """
        super().reset(seed=seed)
        task = self._choose_task(dict(options or {}))
        self._prompt = _prompt(task, self._device)
        self._episode = episode = Episode(task)
        if self.render_mode == "human":
            print(self._text())
        return self._observation(episode), {"task": task.id, "device": self.device_name}

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Evaluates one submission.

        Args:
            action: Source text of a kernel.

        Returns:
            Observation, reward, terminated, truncated (never true), and info: `task`, `turn`,
            `outcome`, `stage`, `speedup`, `unseen_speedup`, `masked`, `reward_terms` and the
            `evaluation` without wall-clock times and without what identifies hidden workloads.

        Raises:
            InvalidAction: The action is not a string.
            ResetNeeded: No episode is in progress.
        """
        request = self.request(action)
        executor = shared_executor(self.device_name, self.secret)
        return self.conclude(action, executor.evaluate(*request))

    def request(self, action: str) -> tuple[str, str, int]:
        """The evaluation that a step with this action needs: task id, source and seed.

        A step consists of a request, its evaluation, and :meth:`conclude`. A vector environment
        evaluates the requests of many episodes at the same time.

        Raises:
            InvalidAction: The action is not a string.
            ResetNeeded: No episode is in progress.
        """
        if not isinstance(action, str):
            raise InvalidAction(f"expected source text as str, found {type(action).__name__}")
        if self._episode is None or self._over(self._episode):
            raise ResetNeeded("no episode is in progress: call reset() first")
        seed = 0 if self._deterministic else int(self.np_random.integers(2**63))
        return self._episode.task.id, action, seed

    def conclude(
        self, action: str, evaluation: Evaluation
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Ends the step that :meth:`request` began, with its evaluation.

        Returns:
            The same values as :meth:`step`.
        """
        assert self._episode is not None
        result = self._reward(evaluation, self._episode.context.of(action))
        self._episode = episode = self._episode.after(action, evaluation, result)
        if self.render_mode == "human":
            print(self._text())
        reward = 0.0 if result.value is None else float(result.value)
        over = self._over(episode)
        return self._observation(episode), reward, over, False, _info(episode)

    def render(self) -> str | None:
        """The last turn as text in `ansi` mode; `human` mode prints each turn when it ends."""
        return self._text() if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Ends the episode. The evaluator is shared and closes with the process."""
        self._episode = None

    def _over(self, episode: Episode) -> bool:
        return len(episode.turns) >= self._max_turns

    def _choose_task(self, options: dict[str, Any]) -> Task:
        chosen = options.pop("task", None)
        if options:
            unknown = ", ".join(repr(key) for key in sorted(options, key=str))
            raise ValueError(f"unknown reset option {unknown}; known: 'task'")
        return (self._tasks if chosen is None else Tasks(chosen, self._arch)).draw(self.np_random)

    def _observation(self, episode: Episode) -> dict[str, Any]:
        best = episode.best
        speedup = speedup_bound(best.evaluation) if best else 0.0
        return {
            "task": self._prompt,
            "feedback": episode.turns[-1].feedback if episode.turns else "",
            "best_source": best.source if best else "",
            "best_speedup": np.array(min(speedup, FASTEST), dtype=np.float32),
            "turn": np.int64(len(episode.turns)),
        }

    def _text(self) -> str:
        if self._episode is None:
            return "no episode is in progress"
        task, turns = self._episode.task, self._episode.turns
        header = f"{task.id}  turn {len(turns)} of {self._max_turns}"
        if not turns:
            return header
        value = turns[-1].reward.value
        reward = "masked" if value is None else f"{value:.3f}"
        return f"{header}  {turns[-1].evaluation.outcome}  reward {reward}\n{turns[-1].feedback}"


def _info(episode: Episode) -> dict[str, Any]:
    """The info of the last step."""
    turn = episode.turns[-1]
    evaluation = turn.evaluation
    return {
        "task": evaluation.task,
        "turn": len(episode.turns),
        "outcome": str(evaluation.outcome),
        "stage": str(evaluation.stage),
        "speedup": evaluation.speedup,
        "unseen_speedup": evaluation.unseen_speedup,
        "masked": turn.reward.masked,
        "reward_terms": dict(turn.reward.terms),
        "evaluation": evaluation.model_dump(mode="json", exclude={"wall_seconds"}),
    }


def _secret(deterministic: bool, file: str | Path | None) -> RunSecret:
    if deterministic:
        return PUBLIC
    return process_secret() if file is None else kept_secret(Path(file))


def _prompt(task: Task, device: DeviceDescription) -> str:
    """The prompt of a task, with the train workloads that the device times."""
    workloads = train_workloads(task.problem, device.scale)
    return prompt(task, device.facts, workloads, device.spec.arch)
