"""Watches the memory accesses of kernels in Triton's interpreter: races, and reads outside.

The interpreter runs the programs of a launch one after the other, so a race does not show in the
values. Two accesses of one element race if different programs make them, at least one is a write,
at least one is not atomic, and no chain of atomics orders them. Vector clocks decide the order: an
atomic releases what its program has done, and acquires what those released that used the same
element before (L. Lamport, Communications of the ACM 21(7), 1978; C. Flanagan and S. Freund,
FastTrack, PLDI 2009). Kernels of a stream run in order, so the watch forgets all accesses at each
launch.

No part of the judge or of the simulator's audits is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Clock = dict[tuple[int, ...], int]
"""For each program that is known, how many of its releases happened before."""


class AccessWatch:
    """The accesses of one launch.

    Attributes:
        facts: `race` and `outside`, if they were seen in any launch.
    """

    def __init__(self) -> None:
        self.facts: set[str] = set()
        self.begin([])

    def begin(self, memory: Iterable[tuple[int, int]]) -> None:
        """Forgets the accesses of the launch before.

        Args:
            memory: First address, and the address behind the last one, of each tensor.
        """
        self._memory = list(memory)
        self._program: tuple[int, ...] = ()
        self._clocks: defaultdict[tuple[int, ...], Clock] = defaultdict(dict)
        self._released: dict[int, Clock] = {}
        self._writes: dict[int, tuple[tuple[int, ...], int, bool]] = {}
        self._reads: defaultdict[int, Clock] = defaultdict(dict)

    def enter(self, program: tuple[int, ...]) -> None:
        """States which program makes the next accesses."""
        self._program = program
        self._clocks[program].setdefault(program, 1)

    def read(self, addresses: Iterable[int]) -> None:
        """Adds reads of elements."""
        mine = self._clocks[self._program]
        for address in addresses:
            self._see(address, mine)
            self._reads[address][self._program] = mine[self._program]

    def write(self, addresses: Iterable[int]) -> None:
        """Adds writes of elements."""
        mine = self._clocks[self._program]
        for address in addresses:
            self._see(address, mine)
            self._see_reads(address, mine)
            self._writes[address] = self._program, mine[self._program], False

    def update(self, addresses: Iterable[int]) -> None:
        """Adds atomic accesses, each of which acquires and releases."""
        mine = self._clocks[self._program]
        for address in addresses:
            for program, time in self._released.get(address, {}).items():
                mine[program] = max(time, mine.get(program, 0))
            self._see(address, mine, atomic=True)
            self._see_reads(address, mine)
            self._released[address] = dict(mine)
            self._writes[address] = self._program, mine[self._program], True
        mine[self._program] += 1

    def _see(self, address: int, mine: Clock, atomic: bool = False) -> None:
        """Notes an address outside of the tensors, and a race with the last write."""
        if not any(first <= address < end for first, end in self._memory):
            self.facts.add("outside")
        if address in self._writes:
            program, time, was_atomic = self._writes[address]
            if mine.get(program, 0) < time and not (atomic and was_atomic):
                self.facts.add("race")

    def _see_reads(self, address: int, mine: Clock) -> None:
        """Notes a race with a read."""
        if any(mine.get(program, 0) < time for program, time in self._reads[address].items()):
            self.facts.add("race")
        self._reads[address] = {}


def watch_interpreter(watch: AccessWatch) -> None:
    """Has Triton's interpreter report the accesses of all programs from now on."""
    from triton.runtime.interpreter import InterpreterBuilder as Builder

    def before(name: str, report: Any) -> None:
        original = getattr(Builder, name)

        def reporting(self: object, *arguments: object) -> object:
            report(*arguments)
            return original(self, *arguments)

        setattr(Builder, name, reporting)

    before("set_grid_idx", lambda x, y, z: watch.enter((x, y, z)))
    before("create_masked_load", lambda at, mask, *_: watch.read(_chosen(at, mask)))
    before("create_masked_store", lambda at, value, mask, *_: watch.write(_chosen(at, mask)))
    before("create_atomic_rmw", lambda kind, at, value, mask, *_: watch.update(_chosen(at, mask)))
    before("create_atomic_cas", lambda at, *_: watch.update(_chosen(at, None)))


def _chosen(pointers: Any, mask: Any) -> list[int]:
    """Returns the addresses of the elements that a mask leaves."""
    addresses = pointers.data.reshape(-1)
    return (addresses if mask is None else addresses[mask.data.reshape(-1)]).tolist()
