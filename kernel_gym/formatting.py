"""How numbers and workloads are written wherever a person or a policy reads them.

The command line needs it before anything heavy is loaded, so it imports records for types alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_gym.records import Evaluation, WorkloadResult

PLAIN_LAYOUT = "contiguous"
NOTHING = "-"
"""Stands for a number that is not there."""


def anonymous(text: str) -> str:
    """Removes folders, addresses and process ids, which differ from run to run."""
    text = re.sub(r'(?:/[^\s/:"\'<>]+)+/(?=[^\s/:"\'<>]+)', "", text)
    text = re.sub(r"\b0x[0-9a-fA-F]{6,}\b", "0x...", text)
    return re.sub(r"\bpid \d+", "pid ...", text)


def describe(result: WorkloadResult) -> str:
    """A workload in a few words: its dimensions, distribution and layout."""
    dims = " ".join(f"{name}={size}" for name, size in result.dims.items())
    layout = "" if result.layout == PLAIN_LAYOUT else f" {result.layout}"
    return f"{dims} {result.distribution}{layout}"


def roofline_share(result: WorkloadResult) -> float | None:
    """The share of the roofline that the candidate reaches on a workload; None when not timed."""
    if not result.roofline_seconds or not result.candidate_seconds:
        return None
    return result.roofline_seconds / result.candidate_seconds


def profiled_workload(evaluation: Evaluation) -> WorkloadResult | None:
    """The train workload that the facts of the kernels belong to; None where that is not known."""
    places = {kernel.workload for kernel in evaluation.kernels}
    place = places.pop() if len(places) == 1 else None
    if place is None or not 0 <= place < len(evaluation.workloads):
        return None
    result = evaluation.workloads[place]
    return result if result.split == "train" else None


def launch_share(result: WorkloadResult) -> float | None:
    """The share of the launches in the candidate's time on a workload; None when not modelled."""
    if result.launch_seconds is None or not result.candidate_seconds:
        return None
    return min(1.0, result.launch_seconds / result.candidate_seconds)


def launch_part(result: WorkloadResult) -> str:
    """The same in words: `2 us (74%)`."""
    share = launch_share(result)
    return NOTHING if share is None else f"{duration(result.launch_seconds)} ({percent(share)})"


def duration(seconds: float | None) -> str:
    """A time in microseconds.

    Example:
        >>> duration(1.5e-5)
        '15 us'
    """
    return NOTHING if seconds is None else f"{seconds * 1e6:.4g} us"


def factor(speedup: float | None) -> str:
    """A speedup.

    Example:
        >>> factor(1.234)
        '1.23x'
    """
    return NOTHING if speedup is None else f"{speedup:.3g}x"


def percent(share: float | None) -> str:
    """A share.

    Example:
        >>> percent(0.456), percent(0.004)
        ('46%', '<1%')
    """
    if share is None:
        return NOTHING
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"
