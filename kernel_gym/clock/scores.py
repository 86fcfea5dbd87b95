"""How well predictions meet measured times: factors, ranks, regret, coverage, share refused.

A modelled time is compared as a measurement would read it: without the model's launch, with the
overhead of the measurement, and not less than its floor. Times of the host, doubtful ones, and for
factors those below twice the floor say nothing about a kernel.

Factors are held out: the one common correction of a family is the median of measured over modelled
in the other families. So is the interval, a factor either way: the smallest one that has nine of
ten of their points, by split-conformal prediction (Lei et al., 2018, "Distribution-free predictive
inference for regression", algorithm 2), which counts the new point as one more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from kernel_gym.sim.constants import LAUNCH_S

APART = 1.1
"""Groups whose measured times differ by less than this factor are not ranked."""
COVERAGE = 0.9
"""The share of points that an interval is to have."""
FLOORS = 2.0
"""Times below so many floors have no factor."""


@dataclass(frozen=True)
class Compared:
    """A measured and a modelled time of one point, both in microseconds as a measurement reads.

    Attributes:
        is_far: Whether the measured time is far enough above the floor for a factor.
    """

    identity: str
    family: str
    group: str
    measured: float
    modelled: float
    is_far: bool = True

    @property
    def log_factor(self) -> float:
        """The logarithm of measured over modelled time."""
        return math.log(self.measured / self.modelled)


def as_measured(seconds: float, floor: float, overhead: float) -> float:
    """Microseconds that a measurement would read for a modelled time."""
    return max(floor, (seconds - LAUNCH_S) * 1e6 + overhead, 1e-3)


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
    covered: list[bool] = []
    for family in families:
        fitted = [
            row.log_factor
            for row in rows
            if row.family != family and row.family not in named and row.is_far
        ]
        centre = statistics.median(fitted) if fitted else 0.0
        width = _width([abs(log - centre) for log in fitted])
        own = [row for row in rows if row.family == family]
        logs = [abs(row.log_factor - centre) for row in own if row.is_far]
        misses += logs
        covered += [log <= width for log in logs]
        fit = {"correction": math.exp(centre), "interval_factor": _exponential(width)}
        figures[family] = _figures(own, logs, [log <= width for log in logs]) | fit
    rhos = [f["rho_in_groups"] for f in figures.values() if f["rho_in_groups"] is not None]
    every = [row for row in rows if row.family in families]
    figures["all"] = _figures(every, misses, covered) | {
        "correction": None,
        "interval_factor": None,
        "mean_rho_of_families": statistics.mean(rhos) if rhos else None,
    }
    return figures


def _width(misses: Sequence[float]) -> float:
    """Half the width of the interval of one more point, as a logarithm."""
    rank = math.ceil((len(misses) + 1) * COVERAGE)
    return sorted(misses)[rank - 1] if rank <= len(misses) else math.inf


def _exponential(log: float) -> float | None:
    """The factor of a logarithm; None if there is no bound."""
    return math.exp(log) if math.isfinite(log) else None


def _figures(
    rows: Sequence[Compared], logs: Sequence[float], covered: Sequence[bool]
) -> dict[str, Any]:
    groups = _groups(rows)
    regrets, rhos = [_regret(g) for g in groups], [_rho(g) for g in groups]
    factors = [row.log_factor for row in rows if row.is_far]
    return {
        "points": len(rows),
        "far": len(logs),
        "modelled_over_measured": math.exp(-statistics.median(factors)) if factors else None,
        "median_factor": math.exp(statistics.median(logs)) if logs else None,
        "within_1.25": sum(log <= math.log(1.25) for log in logs) / len(logs) if logs else None,
        "covered": sum(covered) / len(covered) if covered else None,
        "groups": len(groups),
        "rho_in_groups": statistics.mean(rhos) if rhos else None,
        "regret_mean": statistics.mean(regrets) if regrets else None,
        "regret_worst": max(regrets) if regrets else None,
        "rho": _rho(rows) if len(rows) > 2 else None,
    }


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
