"""Draws declared scalars from the whole range that a prompt calls legal.

A prompt prints the values of the train workloads and the range between them. Hidden workloads draw
from the range, so that a kernel that knows the printed values only is wrong there.
"""

from __future__ import annotations

import math
import random

from kernel_gym.tasks.problem import Problem, ScalarArg

DECADE = 10
"""Least ratio of the ends of a range whose decades are alike likely."""
DECLARED_SHARE = 0.25
"""The share of declared values: the ends of the range, and values with a meaning of their own."""


def draw_scalars(problem: Problem, rng: random.Random) -> dict[str, int | float]:
    """Returns a value for each declared scalar of a problem, most of them between declared ones."""
    return {arg.name: draw_scalar(arg, rng) for arg in problem.declared}


def draw_ends(
    problem: Problem, rng: random.Random
) -> tuple[dict[str, int | float], dict[str, int | float]]:
    """Returns two values for each declared scalar: one end of its range, and the other one.

    Which end comes first is drawn for each scalar. Without a range both are declared values.
    """
    pairs = {arg.name: _ends(arg, rng) for arg in problem.declared}
    first, second = ({name: pair[i] for name, pair in pairs.items()} for i in range(2))
    return first, second


def _ends(arg: ScalarArg, rng: random.Random) -> list[int | float]:
    if not arg.ranged:
        return rng.choices(arg.values, k=2)
    return rng.sample((min(arg.values), max(arg.values)), 2)


def draw_all_between(problem: Problem, rng: random.Random) -> dict[str, int | float]:
    """Returns a value for each declared scalar of a problem, within its range if it has one."""
    return {arg.name: draw_between(arg, rng) for arg in problem.declared}


def draw_scalar(arg: ScalarArg, rng: random.Random) -> int | float:
    """Returns a value of the argument's range.

    A quarter of the values are declared ones, and all where no other is legal.
    """
    if not arg.ranged or rng.random() < DECLARED_SHARE:
        return rng.choice(arg.values)
    return draw_between(arg, rng)


def draw_between(arg: ScalarArg, rng: random.Random) -> int | float:
    """Returns a value from within the argument's range, or a declared one if it has no range.

    Values are log-uniform where both ends have one sign and one end is at least ten times the
    other, and uniform otherwise.
    """
    if not arg.ranged:
        return rng.choice(arg.values)
    low, high = min(arg.values), max(arg.values)
    least, most = sorted((abs(low), abs(high)))
    if low * high > 0 and most >= DECADE * least:
        size = math.exp(rng.uniform(math.log(least), math.log(most)))
        value = min(max(math.copysign(size, low), low), high)
        return value if arg.type is float else round(value)
    return rng.uniform(low, high) if arg.type is float else rng.randint(int(low), int(high))
