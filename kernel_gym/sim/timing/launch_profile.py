"""The profile of a launch as the simulator writes it and reports read it: JSON in a fixed form.

The profile of a launch on a real GPU is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict, cast


class ProfiledPlace(TypedDict):
    """A source line or an instruction on which waves spend time."""

    source: str
    """`FILE:LINE`, or empty if it is not known."""
    text: str
    """Its dearest instruction."""
    share: float
    """The share of the waves' time."""


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


class LaunchDescription(TypedDict, total=False):
    """A launch that has ended well, as observers get it. One that is only counted has `kernel`."""

    kernel: int
    """The number of the kernel on its device."""
    name: str
    grid: Sequence[int]
    block: Sequence[int]
    lds: int
    """Bytes of LDS of a workgroup, static and dynamic."""
    seconds: float | None
    """Modelled; None if no time was asked for."""
    profile: dict[str, object]
    """See `LaunchProfile`."""


def launch_profile(profile: Mapping[str, object]) -> LaunchProfile:
    """Returns the profile in a record, whose form is that of the simulator's model of time."""
    return cast("LaunchProfile", profile)
