"""The registry of terms, and functions that terms share.

A term is a pure function from an evaluation to a finite number, with a name. To add one, decorate a
function with :func:`term`. Further parameters must have defaults and can be set where the term is
used. A parameter named `context` receives the :class:`~kernel_gym.rewards.reward.Context`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import cache

from kernel_gym.records import RATIO_CLAMP, Evaluation
from kernel_gym.rewards.reward import NOTHING_KNOWN, Context, RewardError
from kernel_gym.tasks.near_names import unknown

SLOWEST, FASTEST = RATIO_CLAMP
DEAD_BAND = 1.02
"""A speedup within this factor of 1 counts as 1, since a GPU can hardly measure the difference."""
MAX_MAGNITUDE = 1e6
"""The largest magnitude of any term."""

Term = Callable[..., float]
_TERMS: dict[str, Term] = {}


def term(function: Term) -> Term:
    """Registers a function as a term under its own name and returns it unchanged."""
    if function.__name__ in _TERMS:
        raise ValueError(f"term {function.__name__!r} is registered already")
    _TERMS[function.__name__] = function
    return function


def term_names() -> tuple[str, ...]:
    """Returns the registered terms, sorted."""
    return tuple(sorted(_TERMS))


def parameters(name: str) -> tuple[str, ...]:
    """Returns the names of the parameters that can be set on a term.

    Raises:
        RewardError: There is no such term.
    """
    return tuple(p for p in list(inspect.signature(_find(name)).parameters)[1:] if p != "context")


def value_of(
    name: str,
    evaluation: Evaluation,
    context: Context = NOTHING_KNOWN,
    settings: Mapping[str, object] | None = None,
) -> float:
    """Returns the value of a term, which is finite for any evaluation.

    Args:
        name: One of :func:`term_names`.
        evaluation: The evaluation to score.
        context: Facts on the episode and the submission.
        settings: The parameters of the term that differ from their defaults.

    Returns:
        The value. NaN counts as 0, and infinities as plus or minus a million.
    """
    function, given = _find(name), dict(settings or {})
    if _takes_context(function):
        given["context"] = context
    return bounded(function(evaluation, **given))


@cache
def _takes_context(function: Term) -> bool:
    """Whether a term has the parameter `context`."""
    return "context" in inspect.signature(function).parameters


def bounded(value: float) -> float:
    """Clamps a value to plus or minus a million. NaN counts as 0."""
    return 0.0 if math.isnan(value) else min(max(float(value), -MAX_MAGNITUDE), MAX_MAGNITUDE)


def log_speed(speedup: float | None) -> float:
    """Maps a speedup to a log scale from -1 (10x slower) to 1 (10x faster), with a dead band at 1.

    On this scale 2x and 0.5x are equally far from the baseline, and each doubling adds the same
    amount. Outside the band the value starts at 0 and grows continuously, so there is no step to
    aim for. A missing speedup and NaN count as the slowest.

    Args:
        speedup: Baseline time over candidate time, or None.

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
