"""The seconds that one candidate may take of its host, in all its requests together.

Three limits, since three things take time. Host code and compilers are paid by the clock, so that
who sleeps pays. The simulated GPU is paid by its processor time. Both leave out the time in which
a process was ready and the machine had no processor for it: a busy machine ends no honest
candidate. The wall time bounds everything.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

HOST_SECONDS = 40.0
"""Of host code and compilers. Most honest candidates take 1 to 3 s, the slowest measured 11 s."""
SIMULATED_SECONDS = 45.0
"""Of the simulated GPU's processor time. Most honest candidates take less than 1 s."""
WALL_SECONDS = 240.0
"""Of everything, on any device. Two tries of one evaluation fit a pool's deadline."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Spent:
    """Seconds of a request: by the clock, of the simulated GPU's work, of waiting to be run."""

    wall: float
    simulated: float = 0.0
    waited: float = 0.0

    @property
    def host(self) -> float:
        """What the candidate's host code is charged."""
        return max(0.0, self.wall - self.simulated - self.waited)


@dataclass
class HostBudget:
    """What is left of a candidate's seconds; every request to its worker draws from it."""

    host: float = HOST_SECONDS
    simulated: float = SIMULATED_SECONDS
    wall: float = WALL_SECONDS
    stated: str = field(default="", init=False)
    """Which limit was met first, in words."""

    def left(self, spent: Spent) -> float:
        """Seconds that the request under way may take from now on, if it is paid by the clock."""
        rest = (self.host - spent.host, self.simulated - spent.simulated, self.wall - spent.wall)
        return max(0.0, min(rest))

    def draw(self, spent: Spent) -> None:
        """Pays for a request."""
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
        """Pays for a request by the clock alone, on a GPU; True: nothing is left now."""
        self.draw(Spent(seconds, waited=seconds))
        return self.used_up

    @property
    def overrun(self) -> str:
        """What to say of a candidate that has used it up."""
        return f"the candidate has used up its {self.stated}"

    @property
    def used_up(self) -> bool:
        """Whether nothing is left of one of them."""
        return bool(self.stated)

    def _state(self, limit: str) -> None:
        self.stated = self.stated or f"{limit}, all loads and calls together"


def processor_seconds(pid: int, children: bool = False) -> float:
    """Processor time of a process so far, in seconds; 0 when it is gone.

    Args:
        pid: the process.
        children: count those of its children that have ended as well.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if children else 13])) / _TICKS


def waited_seconds(pid: int) -> float:
    """Seconds in which the first thread of a process was ready, and another one had its processor.

    Others' threads, and those of its own, make a thread wait; sleeping does not.
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def inner_pid(pid: int) -> int:
    """The process that a child of the template has become, behind the one that waits for it."""
    try:
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    except (OSError, IndexError):
        return pid
