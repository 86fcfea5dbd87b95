"""Facts about earlier submissions: which one is the best, and what the next reward may know.

The two rules hold wherever an episode is played, trained on, rescored or summarised. They read
evaluations only, so they also apply to the records of a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol, TypeVar

from kernel_gym.records import Evaluation, Outcome
from kernel_gym.rewards import Context


class Evaluated(Protocol):
    """Anything that holds the evaluation of one submission."""

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation."""
        ...


class ScoredTurn(Evaluated, Protocol):
    """Anything that holds the evaluation of one submission and what it earned."""

    @property
    def earned(self) -> float | None:
        """The reward; None if it is masked."""
        ...


AnyTurn = TypeVar("AnyTurn", bound=ScoredTurn)


def passed(turn: Evaluated) -> bool:
    """Whether a submission is correct."""
    return turn.evaluation.outcome is Outcome.PASSED


def speedup_bound(evaluation: Evaluation) -> float:
    """The lower bound of a speedup; the speedup itself in a record without a bound; else 0."""
    return evaluation.speedup_low or evaluation.speedup or 0.0


def sure_speedup(evaluation: Evaluation) -> float:
    """The lower one of the speedup bounds on train workloads and on unseen workloads.

    It ranks a small certain gain above a large uncertain one, and a kernel for all shapes above one
    for the shapes that the policy saw.
    """
    unseen = evaluation.unseen_speedup_low or evaluation.unseen_speedup
    bound = speedup_bound(evaluation)
    return bound if unseen is None else min(bound, unseen)


def best_turn(turns: Iterable[AnyTurn]) -> AnyTurn | None:
    """The best submission: the correct one with the highest reward.

    Equal rewards are ranked by :func:`sure_speedup`. A reward that pays for the gain over earlier
    turns ranks the largest gain first.

    Args:
        turns: Submissions in the order in which they were made.

    Returns:
        The best submission, the first one if several are equal; None if none is correct.
    """
    return max(filter(passed, turns), key=rank, default=None)


def rank(turn: ScoredTurn) -> tuple[float, float]:
    """The place of a correct submission among others of its task: the greater, the better."""
    earned = -math.inf if turn.earned is None else turn.earned
    return earned, sure_speedup(turn.evaluation)


def reward_context(turns: Iterable[Evaluated]) -> Context:
    """Returns the facts about earlier submissions that the reward of the next one may use.

    Args:
        turns: The earlier submissions of the same episode.
    """
    context = Context()
    for turn in turns:
        context = context.after(turn.evaluation)
    return context
