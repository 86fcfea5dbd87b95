"""Formats numbers and workloads for people and policies.

The command line needs it before anything heavy is loaded, so it imports records for types only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_gym.records import Evaluation, WorkloadResult

PLAIN_LAYOUT = "contiguous"
NOTHING = "-"
"""The text for a missing number."""


def anonymous(text: str) -> str:
    """Removes folders, addresses and process ids, which differ from run to run."""
    text = re.sub(r'(?:/[^\s/:"\'<>]+)+/(?=[^\s/:"\'<>]+)', "", text)
    text = re.sub(r"\b0x[0-9a-fA-F]{6,}\b", "0x...", text)
    return re.sub(r"\bpid \d+", "pid ...", text)


def describe(result: WorkloadResult) -> str:
    """Describes a workload: dimensions, scalar arguments, distribution and layout."""
    sizes = {**result.dims, **result.scalars}
    dims = " ".join(f"{name}={size}" for name, size in sizes.items())
    layout = "" if result.layout == PLAIN_LAYOUT else f" {result.layout}"
    return f"{dims} {result.distribution}{layout}"


def roofline_share(result: WorkloadResult) -> float | None:
    """Returns the share of the roofline that the candidate reaches; None if not timed."""
    if not result.roofline_seconds or not result.candidate_seconds:
        return None
    return result.roofline_seconds / result.candidate_seconds


def profiled_workload(evaluation: Evaluation) -> WorkloadResult | None:
    """Returns the train workload that the kernel facts belong to, or None if unknown."""
    places = {kernel.workload for kernel in evaluation.kernels}
    place = places.pop() if len(places) == 1 else None
    if place is None or not 0 <= place < len(evaluation.workloads):
        return None
    result = evaluation.workloads[place]
    return result if result.split == "train" else None


def launch_share(result: WorkloadResult) -> float | None:
    """Returns the share of launches in the candidate's time; None if not modelled."""
    if result.launch_seconds is None or not result.candidate_seconds:
        return None
    return min(1.0, result.launch_seconds / result.candidate_seconds)


def launch_part(result: WorkloadResult) -> str:
    """Formats the time and share of launches: `2 us (74%)`."""
    share = launch_share(result)
    return NOTHING if share is None else f"{duration(result.launch_seconds)} ({percent(share)})"


def calibration(evaluation: Evaluation) -> list[str]:
    """Says how far the modelled times of train workloads may be off, or why that is not known.

    Measured times have no such lines.
    """
    results = [w for w in evaluation.workloads if w.split == "train" and w.candidate_seconds]
    lines = []
    known = [result for result in results if result.time_factor is not None]
    if known:
        ratio = known[0].speedup_factor
        over = "" if ratio is None else f", a speedup over the baseline kernel by {factor(ratio)}"
        lines.append(
            f"{len(known)} of {len(results)} modelled times may be off by "
            f"{factor(known[0].time_factor)} either way{over} (nine of ten kernels that nobody "
            "compared are nearer)."
        )
    reasons = dict.fromkeys(result.uncalibrated for result in results if result.uncalibrated)
    for reason in reasons:
        count = sum(result.uncalibrated == reason for result in results)
        lines.append(f"{count} of {len(results)} modelled times uncalibrated: {reason}.")
    return lines


def duration(seconds: float | None) -> str:
    """Formats a time in microseconds.

    Example:
        >>> duration(1.5e-5)
        '15 us'
    """
    return NOTHING if seconds is None else f"{seconds * 1e6:.4g} us"


def factor(speedup: float | None) -> str:
    """Formats a speedup.

    Example:
        >>> factor(1.234)
        '1.23x'
    """
    return NOTHING if speedup is None else f"{speedup:.3g}x"


def percent(share: float | None) -> str:
    """Formats a share as a percentage.

    Example:
        >>> percent(0.456), percent(0.004)
        ('46%', '<1%')
    """
    if share is None:
        return NOTHING
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"
