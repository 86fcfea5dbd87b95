"""An episode of `KernelOpt-v0` with text in and out, and one reward per episode."""

from __future__ import annotations

from typing import Any

from kernel_gym.envs.kernel_opt import KernelOptEnv
from kernel_gym.executors import Executor
from kernel_gym.executors.shared import shared_executor

FEEDBACK_CHARS = 2000
"""Default longest feedback, about 600 tokens. Trainers drop answers of tools that are too long."""
CUT = "\n[shortened]"
"""The end of feedback that was shortened."""


class TextEpisode:
    """Episodes in sequence, for a framework that takes one reward per episode.

    The reward of an episode is the highest reward of its submissions, so that a bad kernel on the
    way to a good one costs only a turn. After a hack it is the lowest reward, so that no later
    kernel compensates for the hack. An episode without a submission is scored as an empty
    submission, which earns the reward of a failure.

    Args:
        executor: Evaluates submissions, with its own secret. By default evaluations run in this
            thread on an executor that the process shares.
        feedback_chars: Longest feedback, in characters.
        **kwargs: As for :class:`~kernel_gym.envs.kernel_opt.KernelOptEnv`.

    Raises:
        ValueError: A name is unknown or a number is out of range.

    Example:
        >>> episode = TextEpisode(task="triton2triton/softmax", max_turns=1)
        >>> "softmax" in episode.begin(seed=0)
        True
        >>> print(episode.submit("not a kernel").splitlines()[0])
        Does not compile (stage: build).
        >>> episode.over, episode.reward()
        (True, 0.02)
    """

    def __init__(
        self,
        executor: Executor | None = None,
        feedback_chars: int = FEEDBACK_CHARS,
        **kwargs: Any,
    ) -> None:
        if feedback_chars <= len(CUT):
            least = len(CUT) + 1
            raise ValueError(f"feedback_chars: found {feedback_chars}, expected {least} or more")
        if executor is not None and kwargs.get("secret") is not None:
            raise ValueError("an executor that is given has its own secret: give one or the other")
        self.env = KernelOptEnv(**kwargs)
        self._executor = executor
        self._feedback_chars = feedback_chars
        self.over = True
        """Whether a submission would be refused, because there is no episode or no turn left."""
        self.task = ""
        """The task id of the episode."""
        self.best_speedup = 0.0
        """Lower bound of the speedup of the best correct submission; 0 before there is one."""
        self.turns: list[dict[str, Any]] = []
        """The info of each turn, with its reward under the key `reward` (None if masked)."""

    def begin(self, task: Any = None, seed: int | None = None) -> str:
        """Starts an episode.

        Args:
            task: The task, or another choice as for the environment's `task`; by default the
                environment's own choice.
            seed: As for the environment's `reset`.

        Returns:
            The prompt.

        Raises:
            ValueError: The task is unknown.
            KeyError: The task is unknown; the message has near matches.
        """
        options = None if task is None else {"task": task}
        observation, info = self.env.reset(seed=seed, options=options)
        self.over, self.turns = False, []
        self.task, self.best_speedup = info["task"], 0.0
        return str(observation["task"])

    def submit(self, source: str) -> str:
        """Evaluates a submission.

        Args:
            source: Any text.

        Returns:
            The feedback, shortened if necessary.

        Raises:
            ResetNeeded: There is no episode or no turn left.
        """
        request = self.env.request(source)
        executor = self._executor or shared_executor(self.env.device_name, self.env.secret)
        evaluation = executor.evaluate(*request)
        observation, reward, self.over, _, info = self.env.conclude(source, evaluation)
        self.turns.append({**info, "reward": None if info["masked"] else reward})
        self.best_speedup = float(observation["best_speedup"])
        text = str(observation["feedback"])
        return text if len(text) <= self._feedback_chars else self._shortened(text)

    def reward(self) -> float | None:
        """The reward of the episode. An episode without a submission ends.

        Returns:
            The reward; None if the machine failed in every turn. Leave such an episode out.
        """
        if not self.turns:
            self.submit("")
            self.over = True
        rewards = [turn["reward"] for turn in self.turns if turn["reward"] is not None]
        hacked = any(turn["outcome"] == "hack" for turn in self.turns)
        return (min if hacked else max)(rewards, default=None)

    def _shortened(self, text: str) -> str:
        return text[: self._feedback_chars - len(CUT)] + CUT
