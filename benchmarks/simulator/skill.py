"""How well modelled times rank measured ones: correlations, regret, ratios, with intervals.

Intervals are percentiles of 1,000 bootstrap resamples (of groups where the figure is a mean over
groups, else of records), drawn with a fixed seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

APART = 1.1
"""Pairs of measured times that differ by less than this factor are not ranked."""
MIN_ABOVE_FLOOR_US = 1.0
"""Times closer to the launch floor than this say nothing about a kernel."""
HOST_VARIES = 1.2
"""If the 80th percentile of a time is more than this factor over the 20th, the host was measured.

Repetitions of one kernel on a GPU differ by a few percent. Where the host takes longer to launch
than the GPU to compute, they differ by a third: of 490 public records 443 lie below 1.1 and 41
above 1.2. Two sessions agree within 3 % and 16 % at the median.
"""
_RESAMPLES = 1000
_LEVELS = (2.5, 97.5)


@dataclass(frozen=True)
class Compared:
    """A measured and a modelled time of one record, both in microseconds.

    Attributes:
        measured: As measured, with the launch.
        modelled: Modelled, with the launch of the measurement.
        floor: What an empty launch measures.
        overhead: What the measurement adds to the kernel's own time.
        varies: The 80th percentile of the measured time over the 20th.
    """

    identity: str
    family: str
    group: str
    measured: float
    modelled: float
    floor: float
    overhead: float
    varies: float = 1.0

    @property
    def is_of_the_host(self) -> bool:
        """Whether the measured time is the host's and not the GPU's."""
        return self.varies > HOST_VARIES

    @property
    def ratio(self) -> float | None:
        """Modelled over measured time without the overhead.

        None if the measured time is too close to the floor or of the host.
        """
        if self.is_of_the_host or self.measured - self.floor < MIN_ABOVE_FLOOR_US:
            return None
        own = max(self.modelled - self.overhead, 1e-3)
        return own / (self.measured - self.overhead)


@dataclass(frozen=True)
class Figure:
    """A figure with its 95 % interval; None where there is too little data."""

    value: float
    low: float
    high: float

    def text(self, style: str = "{:.2f}") -> str:
        """The figure and its interval."""
        return f"{style.format(self.value)} [{style.format(self.low)}, {style.format(self.high)}]"


@dataclass(frozen=True)
class FamilySkill:
    """Figures of one family, or of all of them.

    Attributes:
        records: How many records.
        groups: Groups of which at least two measured times differ by APART.
        rho_groups: Mean of Spearman's rho within these groups.
        regret: Mean of (measured time of the variant that the model calls fastest) / (least
            measured time) - 1 in these groups.
        rho: Spearman's rho of all records of the family, of any size.
        tau: (right - wrong) / all of the pairs of records that differ by APART or more.
        pairs: How many such pairs.
        ratio: Geometric mean of modelled over measured time above the launch floor, without times
            of the host.
        spread: exp of the standard deviation of the logarithm of that ratio.
    """

    records: int
    groups: int
    rho_groups: Figure | None
    regret: Figure | None
    rho: Figure | None
    tau: Figure | None
    pairs: int
    ratio: Figure | None
    spread: float | None

    def to_json(self) -> dict[str, Any]:
        """JSON-able data."""
        return asdict(self)


def skill(rows: Sequence[Compared]) -> FamilySkill:
    """The figures of some records."""
    groups = [g for g in _groups(rows) if _spread_apart(g)]
    ratios = [math.log(r.ratio) for r in rows if r.ratio is not None]
    enough = len(rows) >= 3
    return FamilySkill(
        len(rows),
        len(groups),
        _interval([_rho(g) for g in groups], _mean),
        _interval([_regret(g) for g in groups], _mean),
        _interval(rows, _rho) if enough and _spread_apart(rows) else None,
        _interval(rows, _tau) if enough and _pairs(rows) else None,
        len(_pairs(rows)),
        _interval(ratios, lambda x: math.exp(_mean(x))),
        math.exp(float(np.std(ratios, ddof=1))) if len(ratios) > 1 else None,
    )


def pair_order(rows: Iterable[Compared]) -> dict[str, Any]:
    """Pairs of variants of one group that differ by APART: order, and the error of their ratio."""
    right, errors = 0, []
    for group in _groups(rows):
        for a, b in _pairs(group):
            measured = math.log(a.measured / b.measured)
            modelled = math.log(a.modelled / b.modelled)
            right += measured * modelled > 0
            errors.append(math.expm1(abs(measured - modelled)))
    median = float(np.median(errors)) if errors else None
    return {"pairs": len(errors), "in_order": right, "median_ratio_error": median}


def _groups(rows: Iterable[Compared]) -> list[list[Compared]]:
    groups: dict[str, list[Compared]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return [group for group in groups.values() if len(group) > 1]


def _pairs(rows: Iterable[Compared]) -> list[tuple[Compared, Compared]]:
    return [
        (a, b)
        for a, b in combinations(rows, 2)
        if max(a.measured, b.measured) >= APART * min(a.measured, b.measured)
    ]


def _spread_apart(rows: Sequence[Compared]) -> bool:
    times = [row.measured for row in rows]
    return max(times) >= APART * min(times)


def _rho(rows: Sequence[Compared]) -> float:
    measured, modelled = [r.measured for r in rows], [r.modelled for r in rows]
    if min(modelled) == max(modelled) or min(measured) == max(measured):
        return 0.0
    return float(stats.spearmanr(measured, modelled).statistic)


def _tau(rows: Sequence[Compared]) -> float:
    measured = np.array([r.measured for r in rows])
    modelled = np.array([r.modelled for r in rows])
    order = np.sign(modelled[:, None] - modelled[None, :])
    truth = np.sign(measured[:, None] - measured[None, :])
    low, high = np.minimum.outer(measured, measured), np.maximum.outer(measured, measured)
    apart = high >= APART * low
    return float((order * truth)[apart].sum() / max(1, apart.sum()))


def _regret(rows: Sequence[Compared]) -> float:
    pick = min(rows, key=lambda r: r.modelled)
    return pick.measured / min(r.measured for r in rows) - 1


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _interval(items: Sequence[Any], figure: Callable[[Sequence[Any]], float]) -> Figure | None:
    """A figure of items with the interval of its bootstrap; None without items."""
    if not items:
        return None
    random = np.random.default_rng(0)
    chosen = random.integers(0, len(items), (_RESAMPLES, len(items)))
    values = [figure([items[i] for i in row]) for row in chosen]
    low, high = np.percentile(values, _LEVELS)
    return Figure(figure(items), float(low), float(high))
