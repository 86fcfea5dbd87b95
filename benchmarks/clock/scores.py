"""How well predictions meet measured times: factors, ranks, regret, coverage, share refused.

A modelled time is compared as a measurement would read it: without the model's launch, with the
overhead of the measurement, and not less than its floor. Times of the host, doubtful ones, and for
factors those below twice the floor say nothing about a kernel.

Factors are held out: the one common correction of a family is the median of measured over modelled
in the other families. So are the intervals of times and of ratios of two times of one problem
(:mod:`kernel_gym.sim.timing.intervals`), which have no correction and speak of times as a verdict
states them: with the model's launch, and without what a measurement adds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scipy import stats

from kernel_gym.sim.constants import LAUNCH_S
from kernel_gym.sim.timing.intervals import Misses, interval, left_out_coverage, ratio_misses

APART = 1.1
"""Groups whose measured times differ by less than this factor are not ranked."""
FLOORS = 2.0
"""Times below so many floors have no factor."""


@dataclass(frozen=True)
class Compared:
    """A measured and a modelled time of one point, both in microseconds as a measurement reads.

    Attributes:
        factor: Measured over modelled as a verdict states times; None if the measured time is not
            far enough above the floor for a factor.
        seconds: The modelled time of a verdict.
        profile: That of the longest launch.
    """

    identity: str
    family: str
    group: str
    measured: float
    modelled: float
    factor: float | None = None
    seconds: float = 0.0
    profile: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_far(self) -> bool:
        """Whether the measured time is far enough above the floor for a factor."""
        return self.factor is not None

    @property
    def log_factor(self) -> float:
        """The logarithm of measured over modelled time."""
        return math.log(self.measured / self.modelled)


def as_measured(seconds: float, floor: float, overhead: float) -> float:
    """Microseconds that a measurement would read for a modelled time."""
    return max(floor, (seconds - LAUNCH_S) * 1e6 + overhead, 1e-3)


def verdict_factor(microseconds: float, seconds: float, overhead: float) -> float:
    """Measured over modelled time as a verdict states times.

    Args:
        microseconds: The measured time.
        seconds: The modelled time.
        overhead: What the measurement adds to the kernel's own time, in microseconds.
    """
    return (max(0.0, microseconds - overhead) * 1e-6 + LAUNCH_S) / seconds


def score(rows: Sequence[Compared], hold_out: Iterable[str] = ()) -> dict[str, Any]:
    """The figures of compared points.

    Args:
        rows: The points.
        hold_out: Families that no correction is fitted on and that alone are scored; by default
            each family is held out in turn.

    Returns:
        JSON-able figures by family, and of all of them together under `all`.
    """
    named = set(hold_out)
    families = sorted({row.family for row in rows if not named or row.family in named})
    figures: dict[str, dict[str, Any]] = {}
    misses: list[float] = []
    for family in families:
        others = [row for row in rows if row.family != family and row.family not in named]
        fitted = [row.log_factor for row in others if row.is_far]
        centre = statistics.median(fitted) if fitted else 0.0
        own = [row for row in rows if row.family == family]
        logs = [abs(row.log_factor - centre) for row in own if row.is_far]
        misses += logs
        figures[family] = (
            _figures(own, logs)
            | {"correction": math.exp(centre)}
            | _interval("interval", time_misses(others), time_misses(own))
            | _interval("ratio", pair_misses(others), pair_misses(own))
        )
    rhos = [f["rho_in_groups"] for f in figures.values() if f["rho_in_groups"] is not None]
    every = [row for row in rows if row.family in families]
    figures["all"] = (
        _figures(every, misses)
        | {"correction": None, "mean_rho_of_families": statistics.mean(rhos) if rhos else None}
        | _interval_of_all("interval", time_misses(rows), families)
        | _interval_of_all("ratio", pair_misses(rows), families)
    )
    return figures


def time_misses(rows: Iterable[Compared]) -> Misses:
    """By family: the logarithms of measured over modelled time, as a verdict states times."""
    misses: dict[str, list[float]] = {}
    for row in rows:
        if row.factor is not None:
            misses.setdefault(row.family, []).append(math.log(row.factor))
    return misses


def pair_misses(rows: Iterable[Compared]) -> Misses:
    """By family: the logarithms of the measured over the modelled ratio of two times."""
    far = ((r.family, r.group, math.log(r.factor)) for r in rows if r.factor is not None)
    return ratio_misses(far)


def _interval(name: str, others: Misses, own: Misses) -> dict[str, Any]:
    """The interval of the other families, and the share of a family's own points in it."""
    factor = interval(others).factor
    inside = [abs(miss) <= math.log(factor) for each in own.values() for miss in each]
    return {
        f"{name}_factor": factor if math.isfinite(factor) else None,
        f"{name}_covered": statistics.mean(inside) if inside else None,
    }


def _interval_of_all(name: str, misses: Misses, families: Sequence[str]) -> dict[str, Any]:
    """The interval of all families, and the mean share that it covers of one that is left out."""
    whole = interval(misses)
    shares = left_out_coverage(misses)
    kept = [share for family, share in shares.items() if set(family.split("+")) <= set(families)]
    return {
        f"{name}_factor": whole.factor if math.isfinite(whole.factor) else None,
        f"{name}_covered": statistics.mean(kept) if kept else None,
        f"{name}_families": whole.families,
        f"{name}_level": whole.level,
    }


def _figures(rows: Sequence[Compared], logs: Sequence[float]) -> dict[str, Any]:
    groups = _groups(rows)
    regrets, rhos = [_regret(g) for g in groups], [_rho(g) for g in groups]
    factors = [row.log_factor for row in rows if row.is_far]
    return {
        "points": len(rows),
        "far": len(logs),
        "modelled_over_measured": math.exp(-statistics.median(factors)) if factors else None,
        "spread": _spread(factors) if factors else None,
        "median_factor": math.exp(statistics.median(logs)) if logs else None,
        "within_1.25": sum(log <= math.log(1.25) for log in logs) / len(logs) if logs else None,
        "groups": len(groups),
        "rho_in_groups": statistics.mean(rhos) if rhos else None,
        "regret_mean": statistics.mean(regrets) if regrets else None,
        "regret_worst": max(regrets) if regrets else None,
        "rho": _rho(rows) if len(rows) > 2 else None,
    }


def _spread(factors: Sequence[float]) -> float:
    """The median factor between a point's ratio and the median ratio of all points."""
    centre = statistics.median(factors)
    return math.exp(statistics.median(abs(factor - centre) for factor in factors))


def _groups(rows: Iterable[Compared]) -> list[list[Compared]]:
    """Groups of variants whose measured times differ."""
    groups: dict[str, list[Compared]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return [g for g in groups.values() if len(g) > 1 and _ends(g)[1] >= APART * _ends(g)[0]]


def _ends(rows: Sequence[Compared]) -> tuple[float, float]:
    times = [row.measured for row in rows]
    return min(times), max(times)


def _rho(rows: Sequence[Compared]) -> float:
    measured, modelled = [r.measured for r in rows], [r.modelled for r in rows]
    if min(modelled) == max(modelled) or min(measured) == max(measured):
        return 0.0
    return float(stats.spearmanr(measured, modelled).statistic)


def _regret(rows: Sequence[Compared]) -> float:
    pick = min(rows, key=lambda r: r.modelled)
    return pick.measured / min(r.measured for r in rows) - 1
