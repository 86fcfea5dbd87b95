"""The audits of a call. This module is light: simulated GPUs load it, and no records."""

from __future__ import annotations

from enum import StrEnum


class Audit(StrEnum):
    """Which launches of a call are checked for races, lost writes and undefined reads."""

    OFF = "off"
    DRAWN = "drawn"
    """A random share of the launches, which the candidate cannot foresee."""
    AGAIN = "again"
    """As `DRAWN`. The call repeats the last one, and its time and plan must be the same."""
    ON = "on"
    """Every launch."""
    REVERSED = "reversed"
    """Every launch, with the waves of each workgroup in reverse order. The time is not comparable
    with that of other calls."""
