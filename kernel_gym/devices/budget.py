"""The seconds that one candidate may use, in all its requests together.

Host code and compilers are charged by their processor time and by the time in which they do
nothing, so that sleeping counts. The simulated GPU is charged by its processor time. Both leave out
the time in which a process was ready and had no processor, so that a busy machine does not end an
honest candidate. The wall time is a third limit. On a simulator it only guards the machine; on a
GPU it is a limit of the candidate.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.sandbox.processor_times import read_proc

HOST_SECONDS = 40.0
"""Limit for host code and compilers. Most honest candidates take 1 to 3 s, the slowest 11 s."""
EXTENSION_SECONDS = 60.0
"""Host seconds more for a candidate that builds a PyTorch extension. PyTorch's headers take up to
40 s of a busy machine, although they are precompiled."""
RESERVE = 5.0
"""Seconds of host time that a candidate must have left when it is charged for kept results.
Otherwise it makes them itself."""
SIMULATED_SECONDS = 45.0
"""Limit for the simulated GPU's processor time. Most honest candidates take less than 1 s."""
WALL_SECONDS = 240.0
"""Limit for everything on a GPU."""
MAX_HELD_SECONDS = 60.0
"""Limit for host code while its evaluation has a GPU alone. Most of it runs before."""
GUARD_SECONDS = 480.0
"""Wall seconds on a simulator after which the machine is overloaded: the candidate has then had a
processor for less than a fifth of the time. A pool gives up later."""


@dataclass(frozen=True)
class Spent:
    """Seconds of host code, of the simulated GPU's processor, and by the wall clock."""

    host: float = 0.0
    simulated: float = 0.0
    wall: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        """Adds what was spent later."""
        return Spent(
            self.host + other.host, self.simulated + other.simulated, self.wall + other.wall
        )


@dataclass
class HostBudget:
    """The remaining seconds of a candidate. Every request to its worker is charged to it."""

    host: float = HOST_SECONDS
    simulated: float = SIMULATED_SECONDS
    wall: float = WALL_SECONDS
    stated: str = field(default="", init=False)
    """Which limit was reached first, in words."""
    _allowed: float = field(default=HOST_SECONDS, init=False)
    _held: bool = field(default=False, init=False)

    def grant(self, host: float) -> None:
        """Adds seconds of host time."""
        self.host += host
        self._allowed += host

    def hold_gpu(self) -> None:
        """Leaves only a part of the wall time, since others wait for the GPU from now on."""
        if not self._held:
            self._held, self.wall = True, min(self.wall, MAX_HELD_SECONDS)

    def reached(self, spent: Spent) -> bool:
        """Whether the current request has reached a limit of host code or of the simulated GPU."""
        return spent.host >= self.host or spent.simulated >= self.simulated

    def draw(self, spent: Spent) -> None:
        """Charges a request on a simulator."""
        self.host -= spent.host
        self.simulated -= spent.simulated
        self.wall -= spent.wall
        if self.host <= 0:
            self._state(f"{self._allowed:.0f} s of host time")
        elif self.simulated <= 0:
            self._state(f"{SIMULATED_SECONDS:.0f} s of the simulated GPU's processor")

    def draw_wall(self, seconds: float) -> bool:
        """Charges wall time only, for a request on a GPU. Returns whether a limit is reached."""
        self.draw(Spent(wall=seconds))
        if self.wall <= 0:
            held = f"{MAX_HELD_SECONDS:.0f} s with the GPU"
            self._state(held if self._held else f"{WALL_SECONDS:.0f} s")
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


def simulator_budget() -> HostBudget:
    """Returns the budget of a candidate on a simulator, where the wall time is only a guard."""
    return HostBudget(wall=GUARD_SECONDS)


def waited_seconds(pid: int | str) -> float:
    """Returns the seconds in which the first thread of a process was ready and waited for a CPU.

    Sleeping does not count as waiting.

    Args:
        pid: The process, or `thread-self` for this thread.
    """
    fields = read_proc(f"{pid}/schedstat").split()
    return int(fields[1]) / 1e9 if len(fields) > 1 else 0.0


def inner_pid(pid: int) -> int:
    """Returns the candidate's process, given the parent that waits for it."""
    children = read_proc(f"{pid}/task/{pid}/children").split()
    return int(children[0]) if children else pid
