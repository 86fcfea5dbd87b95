"""The registry of terms, and what they share.

A term is a pure function from an evaluation to a finite number, known by name. To add one, decorate
a function with :func:`term`; further parameters, all with defaults, can be set where the term is
used, and one named `context` receives the :class:`~kernel_gym.rewards.reward.Context`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from kernel_gym.records import Evaluation
from kernel_gym.rewards.reward import NOTHING_KNOWN, Context, RewardError
from kernel_gym.tasks.near_names import unknown

SLOWEST, FASTEST = 0.1, 10.0
"""Speedups are clamped to this range (rule 24 of the evaluation protocol)."""
DEAD_BAND = 1.02
"""A speedup within this factor of 1 counts as none: a GPU's clock can hardly tell it apart."""
MOST = 1e6
"""No term is larger than this in magnitude, whatever a record says."""

Term = Callable[..., float]
_TERMS: dict[str, Term] = {}


def term(function: Term) -> Term:
    """Registers a function as a term under its own name and returns it unchanged."""
    if function.__name__ in _TERMS:
        raise ValueError(f"term {function.__name__!r} is registered already")
    _TERMS[function.__name__] = function
    return function


def term_names() -> tuple[str, ...]:
    """The registered terms, sorted."""
    return tuple(sorted(_TERMS))


def parameters(name: str) -> tuple[str, ...]:
    """What can be set on a term.

    Raises:
        RewardError: No term has that name.
    """
    return tuple(p for p in list(inspect.signature(_find(name)).parameters)[1:] if p != "context")


def value_of(
    name: str,
    evaluation: Evaluation,
    context: Context = NOTHING_KNOWN,
    settings: Mapping[str, Any] | None = None,
) -> float:
    """The value of a term, finite whatever the evaluation holds.

    Args:
        name: One of :func:`term_names`.
        evaluation: What is scored.
        context: What is known beyond it.
        settings: The term's parameters that differ from their defaults.

    Returns:
        The value; NaN counts as 0, and infinities as a million.
    """
    function, given = _find(name), dict(settings or {})
    if _takes_context(function):
        given["context"] = context
    return bounded(function(evaluation, **given))


@cache
def _takes_context(function: Term) -> bool:
    """Whether a term asks for what is known beyond the evaluation."""
    return "context" in inspect.signature(function).parameters


def bounded(value: float) -> float:
    """The value within plus and minus a million; NaN counts as 0."""
    return 0.0 if math.isnan(value) else min(max(float(value), -MOST), MOST)


def log_speed(speedup: float | None) -> float:
    """A speedup on a log scale from -1 (10x slower) to 1 (10x faster), with a dead band around 1.

    On this scale 2x and 0.5x are as far from the baseline as each other, and a doubling is worth
    the same wherever it happens. Outside the band the value starts at 0 and grows continuously:
    there is no step to aim for. An absent or meaningless speedup counts as the slowest.

    Args:
        speedup: Baseline time over candidate time.

    Returns:
        A number between -1 and 1.
    """
    if speedup is None or math.isnan(speedup):
        return -1.0
    position = math.log(min(max(speedup, SLOWEST), FASTEST))
    band, span = math.log(DEAD_BAND), math.log(FASTEST)
    beyond = max(abs(position) - band, 0.0) / (span - band)
    return math.copysign(min(beyond, 1.0), position) if beyond else 0.0


def _find(name: str) -> Term:
    if name not in _TERMS:
        raise RewardError(unknown("term", name, term_names()))
    return _TERMS[name]
