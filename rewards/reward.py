"""What a reward is: an evaluation in, a number and the terms it came from out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kernel_gym.records import Evaluation


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

    def __call__(self, evaluation: Evaluation, /) -> RewardResult:
        """Scores one evaluation."""
        ...


class UnknownReward(ValueError):
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
