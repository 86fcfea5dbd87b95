"""Facts about earlier submissions: which one is the best, and what the next reward may know.

The two rules hold wherever an episode is played, trained on, rescored or summarised. They read
evaluations only, so they also apply to the records of a run.
"""

from __future__ import annotations

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


AnyTurn = TypeVar("AnyTurn", bound=Evaluated)


def passed(turn: Evaluated) -> bool:
    """Whether a submission is correct."""
    return turn.evaluation.outcome is Outcome.PASSED


def speedup_bound(evaluation: Evaluation) -> float:
    """The lower bound of a speedup; the speedup itself in a record without a bound; else 0."""
    return evaluation.speedup_low or evaluation.speedup or 0.0


def best_turn(turns: Iterable[AnyTurn]) -> AnyTurn | None:
    """The best submission: the correct one with the highest lower bound of its speedup.

    The lower bound ranks a small certain gain above a large uncertain one.

    Args:
        turns: Submissions in the order in which they were made.

    Returns:
        The best submission, the first one if several are equal; None if none is correct.
    """
    correct = filter(passed, turns)
    return max(correct, key=lambda turn: speedup_bound(turn.evaluation), default=None)


def reward_context(turns: Iterable[Evaluated]) -> Context:
    """Returns the facts about earlier submissions that the reward of the next one may use.

    Args:
        turns: The earlier submissions of the same episode.
    """
    context = Context()
    for turn in turns:
        context = context.after(turn.evaluation)
    return context
