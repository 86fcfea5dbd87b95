"""How numbers and workloads are written wherever a person or a policy reads them.

The command line needs it before anything heavy is loaded, so it imports records for types alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_gym.records import WorkloadResult

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
        >>> percent(0.456)
        '46%'
    """
    return NOTHING if share is None else f"{share:.0%}"
