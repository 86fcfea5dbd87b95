"""The seconds of host time that one candidate may use, in all its requests together.

There are three limits. Host code and compilers are charged by wall time, so that sleeping counts.
The simulated GPU is charged by its CPU time. Both leave out the time in which a process was ready
and had no CPU, so that a busy machine does not end an honest candidate. The third limit is the wall
time of everything.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

HOST_SECONDS = 40.0
"""Limit for host code and compilers. Most honest candidates take 1 to 3 s, the slowest 11 s."""
SIMULATED_SECONDS = 45.0
"""Limit for the simulated GPU's CPU time. Most honest candidates take less than 1 s."""
WALL_SECONDS = 240.0
"""Limit for everything, on any device. Two tries of an evaluation fit a pool's deadline."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Spent:
    """Seconds of a request: wall time, CPU time of the simulated GPU, time waiting for a CPU."""

    wall: float
    simulated: float = 0.0
    waited: float = 0.0

    @property
    def host(self) -> float:
        """The seconds that count as host time."""
        return max(0.0, self.wall - self.simulated - self.waited)


@dataclass
class HostBudget:
    """The remaining seconds of a candidate. Every request to its worker is charged to it."""

    host: float = HOST_SECONDS
    simulated: float = SIMULATED_SECONDS
    wall: float = WALL_SECONDS
    stated: str = field(default="", init=False)
    """Which limit was reached first, in words."""

    def left(self, spent: Spent) -> float:
        """Returns the seconds that the current request may still take."""
        rest = (self.host - spent.host, self.simulated - spent.simulated, self.wall - spent.wall)
        return max(0.0, min(rest))

    def draw(self, spent: Spent) -> None:
        """Charges a request."""
        self.host -= spent.host
        self.simulated -= spent.simulated
        self.wall -= spent.wall
        if self.host <= 0:
            self._state(f"{HOST_SECONDS:.0f} s of host time")
        elif self.simulated <= 0:
            self._state(f"{SIMULATED_SECONDS:.0f} s of the simulated GPU's processor")
        elif self.wall <= 0:
            self._state(f"{WALL_SECONDS:.0f} s")

    def draw_wall(self, seconds: float) -> bool:
        """Charges wall time only, for a request on a GPU. Returns whether a limit is reached."""
        self.draw(Spent(seconds, waited=seconds))
        return self.used_up

    @property
    def overrun(self) -> str:
        """The error message for a candidate that has reached a limit."""
        return f"the candidate has used up its {self.stated}"

    @property
    def used_up(self) -> bool:
        """Whether a limit has been reached."""
        return bool(self.stated)

    def _state(self, limit: str) -> None:
        self.stated = self.stated or f"{limit}, all loads and calls together"


def processor_seconds(pid: int, children: bool = False) -> float:
    """Returns the CPU time of a process in seconds; 0 if it has ended.

    Args:
        pid: The process.
        children: Add the CPU time of its children that have ended.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if children else 13])) / _TICKS


def waited_seconds(pid: int) -> float:
    """Returns the seconds in which the first thread of a process was ready and waited for a CPU.

    Sleeping does not count as waiting.
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def inner_pid(pid: int) -> int:
    """Returns the candidate's process, given the parent that waits for it."""
    try:
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    except (OSError, IndexError):
        return pid
