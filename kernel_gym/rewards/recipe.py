"""Recipes: a product of gates, times a weighted sum of terms, plus an ungated weighted sum.

    value = gate * gate * ... * (weight * term + weight * term + ...)  +  (weight * term + ...)

The last sum is for penalties and partial credit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_gym.records import Evaluation, Outcome
from kernel_gym.rewards.reward import NOTHING_KNOWN, Context, RewardError, RewardResult
from kernel_gym.rewards.terms import parameters, value_of


@dataclass(frozen=True)
class Part:
    """A term with a weight.

    Attributes:
        term: The name of a registered term.
        weight: The factor of the term. With 0 the term is reported but not counted.
        label: The name of the part in the result. Two parts may use the same term.
        settings: The parameters of the term that differ from their defaults.
    """

    term: str
    weight: float = 1.0
    label: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = parameters(self.term)
        for name in self.settings:
            if name not in known:
                raise RewardError(
                    f"term {self.term!r} has no parameter {name!r}; known: {', '.join(known)}"
                )
        if not math.isfinite(self.weight):
            raise RewardError(f"weight of {self.term!r}: found {self.weight}, expected a number")

    @property
    def name(self) -> str:
        """The label, or the term's own name."""
        return self.label or self.term


@dataclass(frozen=True)
class Recipe:
    """A reward made of terms. It is a :class:`~kernel_gym.rewards.reward.Reward`.

    Attributes:
        name: The name of the reward.
        gates: Parts that are multiplied. Their weights are ignored. Without gates the factor is 1.
        terms: Parts that are summed and multiplied by the gates.
        ungated: Parts that are added independently of the gates: penalties, partial credit.
        gamma: The discount of later turns' rewards in a turn's return, see
            :func:`kernel_gym.rewards.returns.returns`.
        source: The publication of the formula.

    Example:
        >>> from kernel_gym.records import Evaluation
        >>> recipe = Recipe("half", gates=(Part("passed"),), terms=(Part("carried_speed", 0.5),),
        ...                 ungated=(Part("hack", -1.0),))
        >>> recipe(Evaluation(protocol_version="1", task="triton2triton/softmax", outcome="hack",
        ...                   stage="train", device="sim:gfx942", clock="modelled",
        ...                   source_sha256="0" * 64)).value
        -1.0
    """

    name: str
    gates: tuple[Part, ...] = ()
    terms: tuple[Part, ...] = ()
    ungated: tuple[Part, ...] = ()
    gamma: float = 0.0
    source: str = ""

    def __post_init__(self) -> None:
        if not 0.0 <= self.gamma <= 1.0:
            raise RewardError(f"gamma: found {self.gamma}, expected a number from 0 to 1")

    def __call__(self, evaluation: Evaluation, context: Context = NOTHING_KNOWN, /) -> RewardResult:
        """Scores one evaluation. The result of an `infra` evaluation has no value."""
        if evaluation.outcome is Outcome.INFRA:
            return RewardResult(None)
        values: dict[str, float] = {}

        def measure(part: Part) -> float:
            values[part.name] = value_of(part.term, evaluation, context, part.settings)
            return values[part.name]

        gate = math.prod(measure(part) for part in self.gates)
        gated = sum(part.weight * measure(part) for part in self.terms)
        ungated = sum(part.weight * measure(part) for part in self.ungated)
        return RewardResult(gate * gated + ungated, values)
