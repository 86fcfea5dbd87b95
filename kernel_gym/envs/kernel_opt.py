"""`KernelOpt-v0`: write a GPU kernel, read the feedback, write a better one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded

from kernel_gym.envs.choice import TaskChoice
from kernel_gym.envs.sessions import DEFAULT_SUITE, Sessions
from kernel_gym.envs.spaces import SourceText
from kernel_gym.episodes.session import EpisodeSession, Step
from kernel_gym.executors import EvaluationRequest
from kernel_gym.executors.shared import shared_executor
from kernel_gym.feedback import MAX_CHARS
from kernel_gym.profiles import profile_of
from kernel_gym.records import Evaluation
from kernel_gym.rewards.terms import FASTEST
from kernel_gym.storage.secret import PUBLIC, RunSecret, kept_secret, process_secret


def _observations(max_turns: int) -> spaces.Dict:
    return spaces.Dict(
        {
            "task": SourceText(),
            "feedback": SourceText(MAX_CHARS),
            "best_source": SourceText(),
            "best_speedup": spaces.Box(0.0, FASTEST, shape=(), dtype=np.float32),
            "turn": spaces.Discrete(max_turns + 1),
        }
    )


class KernelOptEnv(gymnasium.Env[dict[str, Any], str]):
    """Each episode is about one task, and each turn is one submission.

    Action: the source text of a kernel. Text that is not a kernel is a failed submission. Only an
    action that is not a string raises.

    Observation: `task` (the prompt), `feedback` (on the last submission), `best_source` and
    `best_speedup` (the best correct submission of the episode and the lower bound of its speedup;
    "" and 0 before there is one), `turn` (the number of submissions so far).

    Reward: the reward of this turn's submission, see :mod:`kernel_gym.rewards`. If the machine
    failed and not the candidate, `info["masked"]` is true and the reward is 0.0, because Gymnasium
    needs a number. Leave such a step out of training. `info["increment"]` is the change of the
    episode's reward, for algorithms that sum rewards; see :mod:`kernel_gym.episodes.session`.

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
        reward: str | Callable[..., object] = "kernel-opt",
        max_turns: int = 3,
        deterministic: bool = False,
        secret: str | Path | None = None,
        render_mode: str | None = None,
        starts: str | Path | Sequence[str | Path] = (),
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
            starts: Run folders with the right kernels that tasks `improve:TASK` start from.

        Raises:
            ValueError: A name is unknown, a number is out of range, or a deterministic environment
                gets a secret.
            StoreError: The file of the secret is malformed, or `starts` names no run folder.
        """
        if deterministic and secret is not None:
            raise ValueError("a deterministic environment has no secret: give one or the other")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            known = ", ".join(self.metadata["render_modes"])
            raise ValueError(f"unknown render_mode {render_mode!r}; known: {known}")
        self._sessions = Sessions(
            task=task,
            device=device,
            reward=reward,
            max_turns=max_turns,
            deterministic=deterministic,
            starts=starts,
            feedback_chars=None,
        )
        self.device_name = self._sessions.device
        self.secret = _secret(deterministic, secret)
        """The secret that seeds are mixed with."""
        self._max_turns = max_turns
        self.render_mode = render_mode
        self.action_space = SourceText()
        self.observation_space = _observations(max_turns)
        self._session: EpisodeSession | None = None

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The ids of the tasks that `reset` draws from, unless its options name others."""
        return tuple(self._sessions.tasks.probabilities)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, object], dict[str, object]]:
        """Starts an episode.

        Args:
            seed: Seed of the generator that draws the task, unseen workloads and data.
            options: `{"task": ...}` draws the task of this episode from another choice.

        Returns:
            The first observation, and an info with the task and the device.

        Raises:
            ValueError: An option or its task is unknown.
        """
        super().reset(seed=seed)
        choice = _choice(dict(options or {}))
        self._session = session = self._sessions.begin(choice, random=self.np_random)
        if self.render_mode == "human":
            print(self._text())
        return self._observation(session), {"task": session.task.id, "device": self.device_name}

    def step(self, action: str) -> tuple[dict[str, object], float, bool, bool, dict[str, object]]:
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
        evaluation = executor.evaluate(request.task, request.source, request.seed)
        return self.conclude(action, evaluation)

    def request(self, action: str) -> EvaluationRequest:
        """The evaluation that a step with this action needs.

        A step consists of a request, its evaluation, and :meth:`conclude`. A vector environment
        evaluates the requests of many episodes at the same time.

        Raises:
            InvalidAction: The action is not a string.
            ResetNeeded: No episode is in progress.
        """
        if not isinstance(action, str):
            raise InvalidAction(f"expected source text as str, found {type(action).__name__}")
        if self._session is None or self._session.over:
            raise ResetNeeded("no episode is in progress: call reset() first")
        return self._session.request(action)

    def conclude(
        self, action: str, evaluation: Evaluation
    ) -> tuple[dict[str, object], float, bool, bool, dict[str, object]]:
        """Ends the step that :meth:`request` began, with its evaluation.

        Returns:
            The same values as :meth:`step`.
        """
        assert self._session is not None
        step = self._session.conclude(action, evaluation)
        if self.render_mode == "human":
            print(self._text())
        reward = 0.0 if step.reward is None else float(step.reward)
        info = _info(self._session, step)
        return self._observation(self._session), reward, step.done, False, info

    def render(self) -> str | None:
        """The last turn as text in `ansi` mode; `human` mode prints each turn when it ends."""
        return self._text() if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Ends the episode. The evaluator is shared and closes with the process."""
        self._session = None

    def _observation(self, session: EpisodeSession) -> dict[str, object]:
        best = session.episode.best
        return {
            "task": session.prompt,
            "feedback": session.steps[-1].feedback if session.steps else "",
            "best_source": best.source if best else "",
            "best_speedup": np.array(min(session.best_speedup, FASTEST), dtype=np.float32),
            "turn": np.int64(len(session.steps)),
        }

    def _text(self) -> str:
        if self._session is None:
            return "no episode is in progress"
        task, steps = self._session.task, self._session.steps
        header = f"{task.id}  turn {len(steps)} of {self._max_turns}"
        if not steps:
            return header
        last = steps[-1]
        reward = "masked" if last.reward is None else f"{last.reward:.3f}"
        return f"{header}  {last.evaluation.outcome}  reward {reward}\n{last.feedback}"


def _info(session: EpisodeSession, step: Step) -> dict[str, object]:
    """The info of the last step."""
    turn = session.episode.turns[-1]
    evaluation = turn.evaluation
    return {
        "task": evaluation.task,
        "turn": step.turn,
        "outcome": str(evaluation.outcome),
        "stage": str(evaluation.stage),
        "speedup": evaluation.speedup,
        "unseen_speedup": evaluation.unseen_speedup,
        "masked": step.masked,
        "increment": step.increment,
        "episode_reward": step.episode_reward,
        "reward_terms": dict(turn.reward.terms),
        "profile": profile_of(evaluation),
        "evaluation": evaluation.model_dump(mode="json", exclude={"wall_seconds"}),
    }


def _choice(options: dict[str, Any]) -> TaskChoice | None:
    chosen: TaskChoice | None = options.pop("task", None)
    if options:
        unknown = ", ".join(repr(key) for key in sorted(options, key=str))
        raise ValueError(f"unknown reset option {unknown}; known: 'task'")
    return chosen


def _secret(deterministic: bool, file: str | Path | None) -> RunSecret:
    if deterministic:
        return PUBLIC
    return process_secret() if file is None else kept_secret(Path(file))
