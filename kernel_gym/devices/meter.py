"""Measures the cost of a request, so that a busy machine does not change a verdict.

A request spends host seconds: the processor time of the candidate's processes, and the time during
which no process works for the candidate. This is the case if neither its processes, nor the
simulated GPU, nor the judge has a processor or waits for one. So a candidate that sleeps is
charged, and one that waits for a busy machine is not. The judge checks every quarter of a second,
and one check charges at most this amount of idle time: if the whole machine stops, no candidate
fails. Linux reports how long a process waited only after the wait. A wait that is longer than the
step between two checks was meanwhile charged as idle time, so the surplus is given back.

The wall clock decides nothing about a candidate. It guards the machine, and then the evaluation is
`infra` with a message that says so.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from kernel_gym.devices.base import InfraError
from kernel_gym.devices.budget import (
    GUARD_SECONDS,
    HostBudget,
    Spent,
    waited_seconds,
)
from kernel_gym.sandbox.channel import ChannelTimeout
from kernel_gym.sandbox.processor_times import descendants, processor_seconds

LOOK_SECONDS = 0.25
"""Wall seconds between two looks at the clocks."""


class MachineOverloaded(InfraError):
    """The machine gives the processes of an evaluation too little of its processors."""


class Clocks(NamedTuple):
    """Readings of clocks, in seconds."""

    wall: float
    worked: float
    """Processor time of the host processes."""
    simulated: float
    """Processor time of the simulated GPU."""
    waited: float
    """Time in which some of them, or the judge, were ready and had no processor."""
    late: float = 0.0
    """Part of that which lay before the look that came before the one that saw it."""


class Meter:
    """Measures one request to a process and its descendants.

    Args:
        host: The process that runs host code; None where another meter charges it.
        device: The process of the simulated GPU; None without one.
        limit: Host seconds of this request.
        budget: The remaining seconds of the candidate; None for trusted sources.
        short: Whether the request is usually answered before the first look. Then what it spends
            until that look is not measured, as reading the clocks would cost more.
    """

    def __init__(
        self,
        host: int | None,
        device: int | None,
        limit: float,
        budget: HostBudget | None,
        short: bool = False,
    ) -> None:
        self.spent = Spent()
        self._host, self._device = host, device
        self._limit, self._budget = limit, budget
        self._guard = GUARD_SECONDS if budget is None else budget.wall
        self._idle = 0.0
        self._waits: dict[int, float] = {}
        self._looked = time.monotonic()
        self._clocks: Clocks | None = None
        if not short:
            self._clocks = self._read()

    def patience(self) -> float:
        """Returns the seconds until the next look, for a pipe that waits.

        Raises:
            ChannelTimeout: The request has reached a limit.
            MachineOverloaded: Too much time has passed, in which the candidate spent little.
        """
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._look()
        if self.reached:
            raise ChannelTimeout("no answer in time")
        if self.spent.wall >= self._guard:
            raise MachineOverloaded(self._overload())
        return LOOK_SECONDS

    @property
    def reached(self) -> bool:
        """Whether the request has reached its own limit, or one of the candidate's."""
        own = self.spent.host >= self._limit
        return own or (self._budget is not None and self._budget.reached(self.spent))

    def end(self) -> Spent:
        """Returns all that was spent, when the request has ended."""
        if self._clocks is not None:
            self._look()
        return self.spent

    def _look(self) -> None:
        before, self._clocks = self._clocks, self._read()
        self._looked = self._clocks.wall
        if before is None:
            return
        step = Clocks(*(max(0.0, b - a) for a, b in zip(before, self._clocks, strict=True)))
        idle = max(0.0, step.wall - step.worked - step.simulated - step.waited)
        charged = min(idle, LOOK_SECONDS) - min(self._idle, step.late)
        self._idle += charged
        self.spent += Spent(step.worked + charged, step.simulated, step.wall)

    def _read(self) -> Clocks:
        tree = [] if self._host is None else descendants(self._host)
        device = () if self._device is None else (self._device,)
        wall = time.monotonic()
        waits = {pid: waited_seconds(pid) for pid in (*tree, *device)}
        before, self._waits = self._waits, waits
        past = wall - self._clocks.wall if self._clocks else 0.0
        steps = (waited - before[pid] for pid, waited in waits.items() if pid in before)
        late = max(0.0, max(steps, default=0.0) - past)
        return Clocks(
            wall=wall,
            worked=sum(processor_seconds(pid, children=True) for pid in tree),
            simulated=sum(map(processor_seconds, device)),
            waited=sum(waits.values()) + waited_seconds("thread-self"),
            late=late + (self._clocks.late if self._clocks else 0.0),
        )

    def _overload(self) -> str:
        had = self.spent.host + self.spent.simulated
        return (
            f"the machine is overloaded: in {self.spent.wall:.0f} s the candidate had a processor "
            f"for {had:.0f} s; run fewer evaluations at a time, or end other programs"
        )
