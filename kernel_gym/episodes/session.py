"""A session: one episode that takes submissions, evaluates them and scores them.

`KernelOpt-v0`, every adapter and the service play episodes with it, so that the same submissions
have the same rewards everywhere.

The reward of an episode is the highest reward of its submissions, so that a bad kernel on the way
to a good one costs only a turn. After a hack it is the lowest reward, so that no later kernel
compensates for the hack.

Many trainers sum the rewards of steps. If a step paid its submission's whole reward, the same good
kernel submitted twice would pay twice. Such trainers get the `increment` of a step: the change of
the episode's reward. With a discount it is potential-based shaping (Ng, Harada and Russell, 1999)
with the episode's reward as the potential, which is 0 before the first submission:

    increment = discount * (episode reward after) - (episode reward before)

The increments of an episode of n turns, each discounted, sum to `discount ** n` times the reward of
the episode. Without a discount they sum to the reward itself, and a repeated kernel adds nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_gym.episodes.episode import Episode
from kernel_gym.episodes.history import speedup_bound
from kernel_gym.errors import InputError, KernelGymError
from kernel_gym.executors import EvaluationRequest, Executor
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.rewards import Reward
from kernel_gym.tasks import Task

FEEDBACK_CHARS = 2000
"""Default longest feedback of adapters, about 600 tokens. Trainers drop texts that are too long."""
CUT = "\n[shortened]"
"""The end of feedback that was shortened."""


class EpisodeOver(InputError, ValueError):
    """A submission to an episode that has no turn left."""


class MaskedEvaluation(KernelGymError):
    """The machine failed and not the submission, so that there is no reward.

    An adapter raises it where its trainer takes numbers only. The rollout must be left out.
    """


@dataclass(frozen=True)
class Step:
    """The result of one submission.

    Attributes:
        turn: Number of the submission, from 1.
        reward: The reward of this submission; None if it is masked.
        increment: The change of the episode's reward, for trainers that sum the rewards of steps;
            None if it is masked.
        episode_reward: The reward of the episode so far; None if every turn was masked.
        done: Whether no turn is left.
        feedback: The text for the policy.
        evaluation: The whole record. Policies must not see it.
    """

    turn: int
    reward: float | None
    increment: float | None
    episode_reward: float | None
    done: bool
    feedback: str
    evaluation: Evaluation

    @property
    def masked(self) -> bool:
        """Whether the machine failed. Leave a masked step out of training."""
        return self.reward is None

    def number(self) -> float:
        """The increment, for a trainer that takes numbers only.

        Raises:
            MaskedEvaluation: The step is masked.
        """
        if self.increment is None:
            raise MaskedEvaluation(
                f"turn {self.turn} on {self.evaluation.task} was not evaluated, the machine "
                f"failed: {self.evaluation.message}; leave this rollout out"
            )
        return self.increment


class EpisodeSession:
    """One episode.

    A submission is evaluated with a seed that follows from the seed of the episode and the turn.
    The same source submitted again gets the seed of its first submission. Executors have that
    evaluation in their cache, so repeating a source is no further draw of its timing.

    Args:
        task: The task.
        reward: Scores submissions.
        max_turns: Number of submissions.
        seed: Seed of the episode; None evaluates every submission with the seed 0, for tests.
        executor: Returns what evaluates submissions. Only :meth:`submit` and
            :meth:`submit_async` need it.
        prompt: The text of the task, for the caller.
        discount: Discount of the increments.
        feedback_chars: Longest feedback in a step; None for no limit of its own.
        baseline: The reward that the episode starts from. It is subtracted from the reward of the
            episode, for views such as `improve:TASK` that pay for progress only.
        start: The source that edits apply to first; "" stands for the task's start kernel.

    Raises:
        ValueError: A number is out of range.
    """

    def __init__(
        self,
        task: Task,
        reward: Reward,
        max_turns: int = 1,
        seed: int | None = 0,
        *,
        executor: Callable[[], Executor] | None = None,
        prompt: str = "",
        discount: float = 1.0,
        feedback_chars: int | None = None,
        baseline: float = 0.0,
        start: str = "",
    ) -> None:
        if max_turns < 1:
            raise ValueError(f"max_turns must be at least 1, found {max_turns}")
        if not 0.0 <= discount <= 1.0:
            raise ValueError(f"discount: found {discount}, expected a number from 0 to 1")
        require_room(feedback_chars)
        self.episode = Episode(task, start=start)
        self.prompt = prompt
        self.steps: list[Step] = []
        """The result of each submission."""
        self._reward, self._max_turns, self._seed = reward, max_turns, seed
        self._executor, self._discount, self._baseline = executor, discount, baseline
        self._feedback_chars = feedback_chars
        self._seeds: dict[str, int] = {}
        self._earned: list[tuple[float | None, bool]] = []  # reward, whether it is a hack

    @property
    def task(self) -> Task:
        """The task."""
        return self.episode.task

    @property
    def over(self) -> bool:
        """Whether no turn is left."""
        return len(self.steps) >= self._max_turns

    @property
    def best_speedup(self) -> float:
        """Lower bound of the speedup of the best correct submission; 0 before there is one."""
        best = self.episode.best
        return speedup_bound(best.evaluation) if best else 0.0

    @property
    def reward(self) -> float | None:
        """The reward of the episode so far; None before a submission that is not masked."""
        rewards = [reward for reward, _ in self._earned if reward is not None]
        if not rewards:
            return None
        hacked = any(hack for _, hack in self._earned)
        return (min(rewards) if hacked else max(rewards)) - self._baseline

    def request(self, source: str) -> EvaluationRequest:
        """The evaluation that the next submission needs; :meth:`conclude` takes its record.

        Args:
            source: Any text.

        Raises:
            EpisodeOver: No turn is left.
        """
        if self.over:
            raise EpisodeOver(
                f"the episode on {self.task.id} is over after {len(self.steps)} submissions: "
                "begin another one"
            )
        seed = 0
        if self._seed is not None:
            seed = self._seeds.setdefault(source, turn_seed(self._seed, len(self.steps)))
        return EvaluationRequest(self.task.id, source, seed)

    def conclude(self, source: str, evaluation: Evaluation) -> Step:
        """Ends the turn that :meth:`request` began.

        Args:
            source: The submission.
            evaluation: Its whole record.
        """
        before = self.reward
        result = self._reward(evaluation, self.episode.context.of(source))
        self.episode = self.episode.after(source, evaluation, result)
        self._earned.append((result.value, evaluation.outcome is Outcome.HACK))
        after = self.reward
        increment = None
        if result.value is not None and after is not None:
            increment = self._discount * after - (before or 0.0)
        step = Step(
            turn=len(self._earned),
            reward=result.value,
            increment=increment,
            episode_reward=after,
            done=len(self._earned) >= self._max_turns,
            feedback=shortened(self.episode.turns[-1].feedback, self._feedback_chars),
            evaluation=evaluation,
        )
        self.steps.append(step)
        return step

    def submit(self, source: str) -> Step:
        """Evaluates a submission.

        Args:
            source: Any text.

        Raises:
            EpisodeOver: No turn is left.
        """
        request = self.request(source)
        evaluation = self._evaluates().evaluate(request.task, source, request.seed)
        return self.conclude(source, evaluation)

    async def submit_async(self, source: str) -> Step:
        """Evaluates a submission without blocking the event loop.

        Raises:
            EpisodeOver: No turn is left.
        """
        request, executor = self.request(source), self._evaluates()
        # Queueing blocks while the executor is full, so that it happens in a thread.
        future = await asyncio.to_thread(executor.submit, request.task, source, request.seed)
        return self.conclude(source, await asyncio.wrap_future(future))

    def final_reward(self) -> float | None:
        """The reward of the episode. Without a submission it is that of an empty one.

        Returns:
            The reward; None if the machine failed in every turn. Leave such an episode out.
        """
        if not self.steps:
            self.submit("")
            self._max_turns = len(self.steps)
        return self.reward

    def _evaluates(self) -> Executor:
        if self._executor is None:
            raise ValueError("the session has no executor: use request() and conclude()")
        return self._executor()


def turn_seed(seed: int, turn: int) -> int:
    """The seed of a turn, an integer of 63 bits.

    Example:
        >>> turn_seed(0, 1) == turn_seed(0, 1) != turn_seed(0, 2)
        True
    """
    digest = hashlib.sha256(f"{seed}/turn {turn}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def replayed(session: EpisodeSession, turns: Sequence[tuple[str, Evaluation]]) -> EpisodeSession:
    """Continues a session from its recorded submissions; nothing is evaluated.

    Args:
        session: A session without submissions.
        turns: Sources and their whole records, in order.

    Returns:
        The same session.
    """
    for source, evaluation in turns:
        session.request(source)
        session.conclude(source, evaluation)
    return session


def require_room(feedback_chars: int | None) -> None:
    """Checks that feedback may be longer than the mark of a shortened one.

    Raises:
        ValueError: It may not.
    """
    if feedback_chars is not None and feedback_chars <= len(CUT):
        least = len(CUT) + 1
        raise ValueError(f"feedback_chars: found {feedback_chars}, expected {least} or more")


def shortened(text: str, chars: int | None) -> str:
    """The text, or its beginning and a mark if it is longer than a number of characters."""
    if chars is None or len(text) <= chars:
        return text
    return text[: chars - len(CUT)] + CUT
