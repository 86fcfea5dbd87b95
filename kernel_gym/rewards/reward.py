"""The interface of rewards: an evaluation in, a number and its terms out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kernel_gym.errors import InputError
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.tasks.near_names import unknown


@dataclass(frozen=True)
class Context:
    """Facts that a reward may use in addition to the evaluation.

    Attributes:
        best_speedup: The highest lower bound of the speedup of any correct submission earlier in
            the episode, or None.
        source_chars: The length of the submission in characters, or None if unknown.
    """

    best_speedup: float | None = None
    source_chars: int | None = None

    def after(self, evaluation: Evaluation) -> Context:
        """Returns the context of the next turn. Its best speedup includes this evaluation."""
        low = evaluation.speedup_low
        if evaluation.outcome is not Outcome.PASSED or low is None:
            return Context(self.best_speedup)
        return Context(low if self.best_speedup is None else max(low, self.best_speedup))

    def of(self, source: str) -> Context:
        """Returns this context with the length of one submission."""
        return Context(self.best_speedup, len(source))


NOTHING_KNOWN = Context()


@dataclass(frozen=True)
class RewardResult:
    """A reward and its terms.

    Attributes:
        value: The reward, or None if the evaluation failed for a reason that the candidate did not
            cause (`infra`). Training must mask such a step. It is not a zero.
        terms: The terms of the value by name. Every term is finite.
    """

    value: float | None
    terms: Mapping[str, float] = field(default_factory=dict)

    @property
    def masked(self) -> bool:
        """Whether training must mask this step."""
        return self.value is None


class Reward(Protocol):
    """A callable that turns an evaluation into a reward."""

    def __call__(self, evaluation: Evaluation, context: Context = ..., /) -> RewardResult:
        """Scores one evaluation."""
        ...


class UnknownReward(InputError, ValueError):
    """No reward is registered by this name. The message lists similar names."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        """Makes the message.

        Args:
            name: The unknown name.
            known: The registered names.
        """
        super().__init__(unknown("reward", name, sorted(known)))


class RewardError(InputError, ValueError):
    """A user's reward is malformed. The message names the place, the present and expected value."""
