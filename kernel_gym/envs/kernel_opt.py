"""`KernelOpt-v0`: write a GPU kernel, read what became of it, write a better one."""

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
from kernel_gym.executors.shared import shared_executor
from kernel_gym.feedback import MAX_CHARS, feedback
from kernel_gym.hidden import without_hidden
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.rewards import Context, RewardResult, get_reward
from kernel_gym.rewards.terms import FASTEST
from kernel_gym.storage.secret import PUBLIC, RunSecret, kept_secret, process_secret
from kernel_gym.tasks import Task, prompt, train_workloads

DEFAULT_SUITE = "quickstart"


class KernelOptEnv(gymnasium.Env[dict[str, Any], str]):
    """One task an episode, one submission a turn.

    Action: the source of a kernel, as text. Text that is no kernel is a submission like any other
    and fails like one; only an action that is not a string raises.

    Observation: `task` (the prompt), `feedback` (on the last submission), `best_source` and
    `best_speedup` (of the best correct submission of the episode; empty and 0 before there is one),
    `turn` (submissions so far).

    Reward: that of this turn's submission, see :mod:`kernel_gym.rewards`. When the machine failed
    and not the candidate, `info["masked"]` is true and the reward is 0.0 for want of a number:
    leave the step out of training.

    An episode terminates when its turns are used up. Unseen workloads and data are drawn from seeds
    that come from the environment's own generator, mixed with a secret that a policy cannot know:
    after `reset(seed=...)` an episode on the simulator can be repeated exactly in this process, and
    in others that get the same `secret`.

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
        """Chooses tasks, device and reward by name, so that the spec stays plain data.

        Args:
            task: A task id such as `triton2triton/softmax`, a suite to draw tasks from, a list of
                these, or a table of their weights.
            device: A device name such as `sim:gfx942`; `auto` takes a GPU when there is one.
            reward: A registered reward, a `.toml` file, `module:function`, or a callable; see
                :func:`kernel_gym.rewards.get_reward`.
            max_turns: Submissions an episode.
            deterministic: Draw unseen workloads and data from the same seed in every turn of every
                episode, so that an evaluation depends on the source alone, and without a secret. A
                policy that knows the seed knows all answers: for tests, not for training.
            secret: A file with what seeds are mixed with, made when absent; by default it is the
                secret of this process, which ends with it.
            render_mode: `ansi`, `human` or None.

        Raises:
            ValueError: A name is unknown, a number out of range, or a deterministic environment has
                a secret.
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
        """What seeds are mixed with."""
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
        self._task: Task | None = None
        self._turn = 0

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The tasks that an episode may be about, unless `reset` is told otherwise."""
        return tuple(self._tasks.probabilities)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: Seed of the environment's generator: the task drawn, unseen workloads and data.
            options: `{"task": ...}` plays that task, or draws from that suite or those weights,
                in this episode: the place for a curriculum.

        Returns:
            The first observation, and an info with the task and the device.

        Raises:
            ValueError: An option is unknown, or its task is.
        """
        super().reset(seed=seed)
        self._task = self._choose_task(dict(options or {}))
        self._prompt = _prompt(self._task, self._device)
        self._turn = 0
        self._feedback = ""
        self._best_source, self._best_speedup = "", 0.0
        self._context = Context()
        self._last: tuple[Evaluation, RewardResult] | None = None
        if self.render_mode == "human":
            print(self._text())
        return self._observation(), {"task": self._task.id, "device": self._device.name}

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Evaluates one submission.

        Args:
            action: Source text of a kernel.

        Returns:
            Observation, reward, terminated, truncated (never true), and info: `task`, `turn`,
            `outcome`, `stage`, `speedup`, `unseen_speedup`, `masked`, `reward_terms` and the
            `evaluation` but for its wall-clock times and what identifies hidden workloads.

        Raises:
            InvalidAction: The action is not a string.
            ResetNeeded: No episode is under way.
        """
        request = self.request(action)
        executor = shared_executor(self.device_name, self.secret)
        return self.conclude(action, executor.evaluate(*request))

    def request(self, action: str) -> tuple[str, str, int]:
        """The evaluation that a step with this action needs: task, source and seed.

        A step is a request, its evaluation, and :meth:`conclude`. A vector environment evaluates
        the requests of many episodes at a time.

        Raises:
            InvalidAction: The action is not a string.
            ResetNeeded: No episode is under way.
        """
        if not isinstance(action, str):
            raise InvalidAction(f"expected source text as str, found {type(action).__name__}")
        if self._task is None or self._turn >= self._max_turns:
            raise ResetNeeded("no episode is under way: call reset() first")
        seed = 0 if self._deterministic else int(self.np_random.integers(2**63))
        return self._task.id, action, seed

    def conclude(
        self, action: str, evaluation: Evaluation
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Ends the step that :meth:`request` began; returns what :meth:`step` does."""
        assert self._task is not None
        result = self._reward(evaluation, self._context.of(action))
        self._context = self._context.after(evaluation)
        self._turn += 1
        self._feedback = feedback(self._task, evaluation)
        self._remember(action, evaluation)
        self._last = (evaluation, result)
        if self.render_mode == "human":
            print(self._text())
        reward = 0.0 if result.value is None else float(result.value)
        terminated = self._turn >= self._max_turns
        return self._observation(), reward, terminated, False, self._info(evaluation, result)

    def render(self) -> str | None:
        """The last turn as text: returned in `ansi` mode; `human` mode prints it as it happens."""
        return self._text() if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Ends the episode. The evaluator is shared and closes with the process."""
        self._task = None

    def _choose_task(self, options: dict[str, Any]) -> Task:
        chosen = options.pop("task", None)
        if options:
            unknown = ", ".join(repr(key) for key in sorted(options, key=str))
            raise ValueError(f"unknown reset option {unknown}; known: 'task'")
        return (self._tasks if chosen is None else Tasks(chosen, self._arch)).draw(self.np_random)

    def _remember(self, source: str, evaluation: Evaluation) -> None:
        """Keeps the best correct submission by the lower bound of its speedup."""
        speedup = evaluation.speedup_low
        if evaluation.outcome is Outcome.PASSED and (speedup or 0.0) > self._best_speedup:
            self._best_source, self._best_speedup = source, float(speedup or 0.0)

    def _observation(self) -> dict[str, Any]:
        return {
            "task": self._prompt,
            "feedback": self._feedback,
            "best_source": self._best_source,
            "best_speedup": np.array(min(self._best_speedup, FASTEST), dtype=np.float32),
            "turn": np.int64(self._turn),
        }

    def _info(self, evaluation: Evaluation, result: RewardResult) -> dict[str, Any]:
        return {
            "task": evaluation.task,
            "turn": self._turn,
            "outcome": str(evaluation.outcome),
            "stage": str(evaluation.stage),
            "speedup": evaluation.speedup,
            "unseen_speedup": evaluation.unseen_speedup,
            "masked": result.masked,
            "reward_terms": dict(result.terms),
            "evaluation": without_hidden(evaluation).model_dump(
                mode="json", exclude={"wall_seconds"}
            ),
        }

    def _text(self) -> str:
        if self._task is None:
            return "no episode is under way"
        header = f"{self._task.id}  turn {self._turn} of {self._max_turns}"
        if self._last is None:
            return header
        evaluation, result = self._last
        value = "masked" if result.value is None else f"{result.value:.3f}"
        return f"{header}  {evaluation.outcome}  reward {value}\n{self._feedback}"


def _secret(deterministic: bool, file: str | Path | None) -> RunSecret:
    if deterministic:
        return PUBLIC
    return process_secret() if file is None else kept_secret(Path(file))


def _prompt(task: Task, device: DeviceDescription) -> str:
    """The prompt, with the train workloads at the scale at which the device times them."""
    workloads = train_workloads(task.problem, device.scale)
    return prompt(task, device.facts, workloads, device.spec.arch)
