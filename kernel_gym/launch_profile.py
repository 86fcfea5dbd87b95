"""The profile of a launch as the simulator writes it and reports read it: JSON in a fixed form.

A profile has all entries or none. Those of real GPUs have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, cast


class ProfiledPlace(TypedDict):
    """A source line or an instruction on which waves spend time."""

    source: str
    """`FILE:LINE`, or empty if it is not known."""
    text: str
    """Its dearest instruction."""
    share: float
    """Of the waves' time."""


class ConflictingPlace(TypedDict):
    """A source line whose accesses of LDS have bank conflicts."""

    source: str
    cycles: float
    """Cycles of an access, on average."""
    least: float
    """Cycles of an access without conflicts."""


class LaunchProfile(TypedDict, total=False):
    """Where a launch spends its time. Shares are by name, the largest first."""

    stalls: dict[str, float]
    of_peak: dict[str, float]
    utilisation: dict[str, float]
    lines: list[ProfiledPlace]
    hot: list[ProfiledPlace]
    bank_conflicts: list[ConflictingPlace]


def launch_profile(profile: Mapping[str, object]) -> LaunchProfile:
    """Returns the profile in a record, whose form is that of the simulator's model of time."""
    return cast("LaunchProfile", profile)
