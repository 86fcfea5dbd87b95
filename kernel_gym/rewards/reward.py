"""What a reward is: an evaluation in, a number and the terms it came from out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kernel_gym.errors import InputError
from kernel_gym.records import Evaluation, Outcome


@dataclass(frozen=True)
class Context:
    """What a reward may know beyond the evaluation itself.

    Attributes:
        best_speedup: Lower bound of the best correct submission earlier in the episode; None when
            there is none.
        source_chars: Length of the submission; None when it is not known.
    """

    best_speedup: float | None = None
    source_chars: int | None = None

    def after(self, evaluation: Evaluation) -> Context:
        """The context of the next turn: the best speedup with this evaluation counted in."""
        low = evaluation.speedup_low
        if evaluation.outcome is not Outcome.PASSED or low is None:
            return Context(self.best_speedup)
        return Context(low if self.best_speedup is None else max(low, self.best_speedup))

    def of(self, source: str) -> Context:
        """This context for one submission."""
        return Context(self.best_speedup, len(source))


NOTHING_KNOWN = Context()


@dataclass(frozen=True)
class RewardResult:
    """A reward and its terms.

    Attributes:
        value: The reward, or None when the evaluation failed through no doing of the candidate's
            (`infra`). Training must mask such a step: it is not a zero.
        terms: What the value was made of, by name; every term is finite.
    """

    value: float | None
    terms: Mapping[str, float] = field(default_factory=dict)

    @property
    def masked(self) -> bool:
        """Whether training must leave this step out."""
        return self.value is None


class Reward(Protocol):
    """Anything that turns an evaluation into a reward."""

    def __call__(self, evaluation: Evaluation, context: Context = ..., /) -> RewardResult:
        """Scores one evaluation."""
        ...


class UnknownReward(InputError, ValueError):
    """A reward was asked for by a name that nobody registered."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        """States the name and the nearest known ones.

        Args:
            name: The name asked for.
            known: The registered names.
        """
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
        super().__init__(f"unknown reward {name!r}; {hint}")


class RewardError(InputError, ValueError):
    """A reward of the user's own is malformed: where, what was found, what was expected."""
