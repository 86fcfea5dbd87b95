"""Intervals of modelled times that hold for a kernel family which nobody compared.

Points of one family miss alike, so a quantile over points promises too much. Hierarchical conformal
prediction (Lee, Barber and Willett, 2023, "Distribution-free inference with hierarchical data")
gives each of `k` families the weight 1/(k + 1), which its points share, and a miss without bound
the rest. If families are exchangeable, and so are the points of each, the weighted quantile covers
a point of one more family with the promised probability. So `k` families promise at most k/(k + 1).
Dunn, Wasserman and Ramdas (2023, "Distribution-free prediction sets for two-layer hierarchical
models") compare other ways for the same setting.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

LEVEL = 0.9
"""The probability that an interval promises if there are families enough."""
Misses = Mapping[str, Sequence[float]]
"""By family: logarithms of measured over modelled."""


@dataclass(frozen=True)
class Interval:
    """The factor either way that has a point of a new family with a probability.

    Attributes:
        families: Families that it comes from.
        level: The probability: 0.9, or k/(k + 1) if `k` families promise no more.
        factor: At least 1; infinite without families.
    """

    families: int
    level: float
    factor: float


def interval(misses: Misses) -> Interval:
    """The interval for a point of a family that is not among those given."""
    families = [[abs(miss) for miss in each] for each in misses.values() if each]
    count = len(families)
    level = min(LEVEL, count / (count + 1))
    weighted = sorted((miss, 1 / ((count + 1) * len(each))) for each in families for miss in each)
    reached = 0.0
    for miss, weight in weighted:
        reached += weight
        if reached >= level - 1e-9:
            return Interval(count, level, math.exp(miss))
    return Interval(count, level, math.inf)


def left_out_coverage(misses: Misses) -> dict[str, float]:
    """By family: the share of its points in the interval of the other families."""
    shares = {}
    for family, own in misses.items():
        if own:
            factor = interval({k: v for k, v in misses.items() if k != family}).factor
            shares[family] = statistics.mean(abs(miss) <= math.log(factor) for miss in own)
    return shares


def ratio_misses(points: Iterable[tuple[str, str, float]]) -> dict[str, list[float]]:
    """The misses of ratios of two times of one problem.

    Args:
        points: Family, group and logarithm of measured over modelled of each point. A group has
            variants that solve one problem of one size.

    Returns:
        By family, or by `a+b` for a pair from two: the logarithm of the measured over the modelled
        ratio of each pair.
    """
    groups: dict[str, list[tuple[str, float]]] = {}
    for family, group, miss in points:
        groups.setdefault(group, []).append((family, miss))
    misses: dict[str, list[float]] = {}
    for variants in groups.values():
        for (family, first), (other, second) in itertools.combinations(variants, 2):
            name = "+".join(sorted({family, other}))
            misses.setdefault(name, []).append(first - second)
    return misses
