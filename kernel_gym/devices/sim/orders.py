"""Runs each launch that is paid in a second order of its workgroups and waves.

The simulator runs workgroups in order, and the waves of each in order. Hardware promises no more
than that workgroups begin in order. So a launch runs once as it is timed, and once with reversed
orders, on the same memory. What follows depends on the two results:

- The memory is equal byte for byte: the order decides nothing.
- It is not, and an audit finds a race: that is a fault.
- It is not, and there is no race, as when floats are summed by atomics. Then both results are
  right or the kernel is wrong. All later work of the call is done on both, and the judge compares
  the outputs of both with the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kernel_gym.devices.sim.kept_memory import KeptMemory, Region
from kernel_gym.sim.engine.engine import LaunchResult

MORE_INSTRUCTIONS = 4
"""The second run may execute this many times the instructions of the first one: workgroups that
wait for each other wait longer."""
FREE_INSTRUCTIONS = 1_000_000
"""Further instructions of the second run."""
_GIVEN_UP = ("time_limit", "instruction_limit", "deadlock")
"""Faults of the second run that say nothing about the result, as waves may wait for others."""

Run = Callable[..., LaunchResult]
"""Launches a kernel with the further arguments of `Engine.launch`."""


class Orders:
    """Both results of a call, as long as the order of its launches matters.

    Args:
        regions: Returns the live regions of memory.
    """

    def __init__(self, regions: Callable[[], list[Region]]) -> None:
        self._regions = regions
        self._other: KeptMemory | None = None

    def begin(self) -> None:
        """Starts a new call. The order did not matter yet."""
        self._other = None

    @property
    def differ(self) -> bool:
        """Whether memory depends on the order of a launch of this call."""
        return self._other is not None

    def swap(self) -> None:
        """Exchanges memory with that of the other order."""
        if self._other is not None:
            now = KeptMemory(self._regions())
            self._other.restore(self._regions())
            self._other = now

    def on_both(self, work: Callable[[], object]) -> None:
        """Does work that is no launch: on memory, and on that of the other order."""
        work()
        self.on_other(work)

    def on_other(self, work: Callable[[], object]) -> None:
        """Does work on the memory of the other order, if there is one."""
        if self._other is not None:
            self.swap()
            work()
            self.swap()

    def allocated(self, region: Region) -> None:
        """Notes new memory, which has the same content in both orders so far."""
        if self._other is not None:
            self._other.keep([region])

    def launch(self, run: Run, **paid: object) -> tuple[LaunchResult, bool]:
        """Runs a launch as it is paid, and in the other order.

        Args:
            run: The launch.
            paid: Arguments of the run that is paid.

        Returns:
            The result of the run that is paid, or the fault that another run has found. And whether
            the launch was audited.
        """
        if self._other is not None:
            return self._launch_twice(run, paid), False
        before = KeptMemory(self._regions())
        result = run(**paid)
        if result.fault:
            return result, False
        first = KeptMemory(before.changed(self._regions()))
        before.restore(self._regions())
        other = self._reversed(run, result)
        changed = before.changed(self._regions())
        if not other.fault and not first.changed(self._regions()) and all(map(first.has, changed)):
            return result, False
        other_memory = KeptMemory(self._regions())
        before.restore(self._regions())
        audit = run(audit=True, model_time=False)
        if audit.fault:
            return audit, True
        before.restore(self._regions())
        first.restore(self._regions())
        if other.fault:
            return (result if other.fault.kind in _GIVEN_UP else other), True
        if audit.findings:  # a race that is not the candidate's explains the difference
            return replace(result, findings=audit.findings), True
        self._other = other_memory
        return result, True

    def _launch_twice(self, run: Run, paid: dict[str, object]) -> LaunchResult:
        result = run(**paid)
        if result.fault:
            return result
        self.swap()
        other = self._reversed(run, result)
        self.swap()
        if other.fault and other.fault.kind in _GIVEN_UP:
            self._other = None
        elif other.fault:
            return other
        return result

    @staticmethod
    def _reversed(run: Run, result: LaunchResult) -> LaunchResult:
        limit = MORE_INSTRUCTIONS * result.wave_instructions + FREE_INSTRUCTIONS
        return run(
            reverse_waves=True, reverse_workgroups=True, model_time=False, instruction_limit=limit
        )
