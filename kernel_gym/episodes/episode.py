"""An episode: a task and the submissions on it so far, as a policy sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypedDict

from kernel_gym.episodes.history import best_turn, reward_context
from kernel_gym.feedback import feedback
from kernel_gym.hidden import without_hidden
from kernel_gym.records import Evaluation
from kernel_gym.rewards import Context, RewardResult
from kernel_gym.tasks import Task

Prompt = Callable[[Task], str]
"""Writes the first message of an episode on a task."""


class ChatMessage(TypedDict):
    """One message of a chat, in the form that chat templates and chat endpoints take."""

    role: str
    content: str


@dataclass(frozen=True)
class Turn:
    """One submission and its result.

    Attributes:
        source: The submission.
        evaluation: Its evaluation, without what identifies hidden workloads.
        reward: Its reward.
        feedback: The text that the policy reads about it.
        text: The reply that contained it; "" if that is not known.
    """

    source: str
    evaluation: Evaluation
    reward: RewardResult
    feedback: str
    text: str = ""

    @property
    def earned(self) -> float | None:
        """The reward as a number; None if the machine failed."""
        return self.reward.value


@dataclass(frozen=True)
class Episode:
    """A task and the submissions on it. It is immutable: :meth:`after` makes a longer one.

    Attributes:
        task: The task.
        turns: The submissions so far, in order.
        sample: The number of this episode among those of its task, from 1.
        start: The source that edits apply to first; "" stands for the task's start kernel.
    """

    task: Task
    turns: tuple[Turn, ...] = ()
    sample: int = 1
    start: str = ""

    def after(
        self,
        source: str,
        evaluation: Evaluation,
        reward: RewardResult,
        *,
        text: str = "",
        problem: str = "",
    ) -> Episode:
        """The episode with one more submission.

        Args:
            source: The submission.
            evaluation: Its whole evaluation. What identifies hidden workloads is not kept.
            reward: Its reward, given :attr:`context`.
            text: The reply that contained it, if known.
            problem: A sentence on what was wrong with the reply. It precedes the feedback.
        """
        lines = [problem] if problem else []
        message = "\n".join([*lines, feedback(self.task, evaluation)])
        turn = Turn(source, without_hidden(evaluation), reward, message, text)
        return replace(self, turns=(*self.turns, turn))

    @property
    def context(self) -> Context:
        """Facts about the earlier submissions that the reward of the next one may use."""
        return reward_context(self.turns)

    @property
    def best(self) -> Turn | None:
        """The best correct submission, see :func:`~kernel_gym.episodes.history.best_turn`."""
        return best_turn(self.turns)

    def messages(self, prompt: Prompt) -> tuple[ChatMessage, ...]:
        """The episode as a chat: the prompt, then replies and feedback in turn.

        Args:
            prompt: Writes the first message.

        Returns:
            The messages; the last one is the user's. A turn without a reply shows its source.
        """
        messages = [ChatMessage(role="user", content=prompt(self.task))]
        for turn in self.turns:
            messages.append(ChatMessage(role="assistant", content=turn.text or turn.source))
            messages.append(ChatMessage(role="user", content=turn.feedback))
        return tuple(messages)
