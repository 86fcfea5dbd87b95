"""Aggregates workload results to the numbers of a record (rules 24 and 25)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernel_gym.judge.protocol import RATIO_CLAMP
from kernel_gym.records import WorkloadResult
from kernel_gym.tasks.workload import Split


def geometric_speedup(
    results: Sequence[WorkloadResult], split: Split, bound: str = "speedup"
) -> float | None:
    """Returns the geometric mean of the clamped ratios of a split's timed workloads.

    It is None if one of them has no ratio, or if there is none.
    """
    ratios = [getattr(r, bound) for r in results if r.split is split and r.timed]
    if not ratios or any(r is None for r in ratios):
        return None
    low, high = RATIO_CLAMP
    return math.exp(sum(math.log(min(max(r, low), high)) for r in ratios) / len(ratios))
