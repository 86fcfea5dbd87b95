"""Whether a task is part of the suites."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """The result of admission for one task."""

    ADMITTED = "admitted"
    SATURATED = "saturated"
    """On no device that was tried is there head-room over the baseline."""
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """There is no verdict on the present content."""
