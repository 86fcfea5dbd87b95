"""An episode of `KernelOpt-v0` as text in, text out, with one reward for all of it."""

from __future__ import annotations

from typing import Any

from kernel_gym.envs.kernel_opt import KernelOptEnv
from kernel_gym.executors import Executor
from kernel_gym.executors.shared import shared_executor

FEEDBACK_CHARS = 2000
"""Some 600 tokens. Trainers drop a tool's answer that does not fit the completion any more."""
CUT = "\n[shortened]"


class TextEpisode:
    """Episodes, one after another, for a framework that gives one reward an episode.

    The reward of an episode is that of its best submission: writing a bad kernel on the way to a
    good one costs a turn and nothing else. After a hack it is that of the worst, so that no later
    kernel makes up for it. An episode without a submission is scored as one with an empty
    submission: under every reward it earns what failing does, and no more.

    Args:
        executor: Where evaluations run; by default in this thread, on an executor that the process
            shares. One that is given mixes seeds with its own secret.
        feedback_chars: Longest feedback, in characters.
        **kwargs: As for :class:`~kernel_gym.envs.kernel_opt.KernelOptEnv`.

    Raises:
        ValueError: A name is unknown or a number out of range.

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
        """Whether a submission would be refused, for want of an episode or of turns."""
        self.task = ""
        """The id of the task under way."""
        self.best_speedup = 0.0
        """Lower bound of the best correct submission's speedup; 0 before there is one."""
        self.turns: list[dict[str, Any]] = []
        """The info of each turn so far, and its reward under `reward`, None if masked."""

    def begin(self, task: Any = None, seed: int | None = None) -> str:
        """Starts an episode.

        Args:
            task: Plays that task; by default one is drawn. Whatever the environment's `task` takes.
            seed: As for the environment's `reset`.

        Returns:
            The prompt.

        Raises:
            ValueError: The task is unknown (or KeyError, with near matches).
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
            The feedback, shortened.

        Raises:
            ResetNeeded: No episode is under way, or its turns are used up.
        """
        request = self.env.request(source)
        executor = self._executor or shared_executor(self.env.device_name, self.env.secret)
        evaluation = executor.evaluate(*request)
        observation, reward, self.over, _, info = self.env.conclude(source, evaluation)
        self.turns.append({**info, "reward": None if info["masked"] else reward})
        self.best_speedup = float(observation["best_speedup"])
        told = str(observation["feedback"])
        return told if len(told) <= self._feedback_chars else self._shortened(told)

    def reward(self) -> float | None:
        """The reward of the episode; ends it when there was no submission.

        Returns:
            The reward, or None when the machine failed in every turn: leave the episode out.
        """
        if not self.turns:
            self.submit("")
            self.over = True
        rewards = [turn["reward"] for turn in self.turns if turn["reward"] is not None]
        hacked = any(turn["outcome"] == "hack" for turn in self.turns)
        return (min if hacked else max)(rewards, default=None)

    def _shortened(self, told: str) -> str:
        return told[: self._feedback_chars - len(CUT)] + CUT
