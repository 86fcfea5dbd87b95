"""Scores with whole kernels held out by name, for points that are the winners of a tuner.

Such a set has one kernel for a problem, so nothing ranks variants. It says how well absolute times
are met: after one common correction from the other folds' kernels, and over the shapes of a kernel.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from benchmarks.clock.scores import Compared
from kernel_gym.sim.timing.intervals import interval

FOLDS = 5
MIN_SHAPES = 4
"""Shapes that a kernel needs for a rank correlation over them."""
APART = 2.0
"""Kernels whose slowest shape takes at least so many times their fastest are ranked apart, too."""


@dataclass(frozen=True)
class Kernel:
    """The name of a point's kernel, and whether its time is calibrated.

    Attributes:
        name: Of the kernel, with its configuration.
        uncalibrated: Why a verdict would state no factor; empty if it would.
        otherwise: The same, if the chip were the compared one.
    """

    name: str
    uncalibrated: str = ""
    otherwise: str = ""


def fold_of(name: str) -> int:
    """The fold of a kernel: by a hash of its name, so that all its shapes are in one."""
    return hashlib.sha256(name.encode()).digest()[0] % FOLDS


def score_folds(
    rows: Sequence[Compared], kernels: Mapping[str, Kernel], stated: float | None
) -> dict[str, dict[str, Any]]:
    """The figures of compared points, by family and of all together.

    Args:
        rows: The points. Those without a factor are left out.
        kernels: By the name of a point.
        stated: The factor either way that verdicts state of a time that they call calibrated.
    """
    far = [row for row in rows if row.is_far]
    misses = _held_out(far, kernels)
    families = {family: [row for row in far if row.family == family] for family in _families(far)}
    return {
        name: _figures(own, kernels, misses, stated)
        for name, own in {**families, "all": far}.items()
    }


def _families(rows: Sequence[Compared]) -> list[str]:
    return sorted({row.family for row in rows})


def _held_out(rows: Sequence[Compared], kernels: Mapping[str, Kernel]) -> dict[str, Miss]:
    """By point: its miss after the common correction of the other folds, and their interval."""
    misses = {}
    for fold in range(FOLDS):
        others = [row for row in rows if fold_of(kernels[row.identity].name) != fold]
        own = [row for row in rows if fold_of(kernels[row.identity].name) == fold]
        logs = [row.log_factor for row in others]
        centre = statistics.median(logs) if logs else 0.0
        corrected = interval(_by_kernel(others, kernels, centre)).factor
        for row in own:
            misses[row.identity] = Miss(row.log_factor - centre, corrected)
    return misses


@dataclass(frozen=True)
class Miss:
    """The logarithm of measured over corrected modelled time, and the interval of other kernels."""

    log: float
    interval: float


def _by_kernel(
    rows: Sequence[Compared], kernels: Mapping[str, Kernel], centre: float
) -> dict[str, list[float]]:
    misses: dict[str, list[float]] = {}
    for row in rows:
        misses.setdefault(kernels[row.identity].name, []).append(row.log_factor - centre)
    return misses


def _figures(
    rows: Sequence[Compared],
    kernels: Mapping[str, Kernel],
    misses: Mapping[str, Miss],
    stated: float | None,
) -> dict[str, Any]:
    logs = [abs(misses[row.identity].log) for row in rows]
    inside = [
        math.exp(log) <= misses[row.identity].interval for row, log in zip(rows, logs, strict=True)
    ]
    ratios = [-row.log_factor for row in rows]
    ranked = _ranked(rows, kernels)
    rhos = [_rho(own) for own in ranked]
    apart = [rho for rho, own in zip(rhos, ranked, strict=True) if _range(own) >= APART]
    factors = [row.factor for row in rows if row.factor]
    bare = [max(factor, 1 / factor) for factor in factors]
    return {
        "points": len(rows),
        "kernels": len({kernels[row.identity].name for row in rows}),
        "modelled_over_measured": _exp_median(ratios),
        "median_factor": _exp_median(logs),
        "within_1.25": _share([log <= math.log(1.25) for log in logs]),
        "corrected_interval": _exp_median(
            [math.log(misses[row.identity].interval) for row in rows]
        ),
        "corrected_covered": _share(inside),
        "stated_covered": _share([each <= stated for each in bare]) if stated else None,
        "kernels_ranked": len(rhos),
        "rho_over_shapes": statistics.mean(rhos) if rhos else None,
        "kernels_apart": len(apart),
        "rho_apart": statistics.mean(apart) if apart else None,
        "uncalibrated": _share([bool(kernels[row.identity].uncalibrated) for row in rows]),
        "uncalibrated_otherwise": _share([bool(kernels[row.identity].otherwise) for row in rows]),
    }


def _ranked(rows: Sequence[Compared], kernels: Mapping[str, Kernel]) -> list[list[Compared]]:
    """The points of each kernel that has enough shapes."""
    shapes: dict[str, list[Compared]] = {}
    for row in rows:
        shapes.setdefault(kernels[row.identity].name, []).append(row)
    return [own for own in shapes.values() if len(own) >= MIN_SHAPES]


def _range(rows: Sequence[Compared]) -> float:
    measured = [row.measured for row in rows]
    return max(measured) / min(measured)


def _rho(rows: Sequence[Compared]) -> float:
    """Spearman's rho of modelled and measured times."""
    measured, modelled = [row.measured for row in rows], [row.modelled for row in rows]
    if len(set(measured)) == 1 or len(set(modelled)) == 1:
        return 0.0
    return float(stats.spearmanr(measured, modelled).statistic)


def _exp_median(logs: Sequence[float]) -> float | None:
    return math.exp(statistics.median(logs)) if logs else None


def _share(flags: Sequence[bool]) -> float | None:
    return statistics.mean(flags) if flags else None
