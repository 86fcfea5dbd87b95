"""When a run was made, how long it took, and by which command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kernel_gym.storage.run_records import RunSession


@dataclass(frozen=True)
class RunTimes:
    """When a run took place and how long it took. Texts are empty where nothing was recorded."""

    when: str
    length: str
    """Total duration of the sessions that have a recorded end."""
    command: str
    parts: int


def run_times(sessions: Sequence[RunSession]) -> RunTimes:
    """Summarises the sessions of a run.

    Args:
        sessions: In the order in which they began.

    Example:
        >>> run_times([RunSession(started=0.0, ended=90.0, command="kernel-gym")])
        RunTimes(when='1970-01-01 00:00 UTC', length='1 min 30 s', command='kernel-gym', parts=1)
    """
    if not sessions:
        return RunTimes("", "", "", 0)
    seconds = sum(
        session.ended - session.started for session in sessions if session.ended is not None
    )
    when = datetime.fromtimestamp(sessions[0].started, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return RunTimes(when, _length(seconds), sessions[-1].command, len(sessions))


def _length(seconds: float) -> str:
    """Formats a duration in its two largest units."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s" if whole else ""
