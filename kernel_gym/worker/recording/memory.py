"""The memory of tensors without data: addresses of a range of their own, and what lies at them."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, replace

from kernel_gym.plans.addresses import STAND_IN_BASE, STAND_IN_BYTES
from kernel_gym.plans.types import BufferRole, PlanBuffer
from kernel_gym.worker.sim.runtime import DeviceError, OutOfMemoryError

ALIGNMENT = 256
GUARD = 4096
"""Bytes between two buffers, so that the end of one is not the start of the next."""
_LAST = STAND_IN_BASE + STAND_IN_BYTES - GUARD


@dataclass(frozen=True)
class _Placed:
    """A buffer at its address. The number counts the buffers of its call."""

    start: int
    size: int
    call: int
    number: int


class StandInMemory:
    """Gives addresses to the buffers of one call after another.

    Addresses only grow within a call, so a pointer to a freed buffer stays invalid. Arguments are
    memory of the caller, who uses it again for other values: calls of one shape get them at the
    same addresses. So host code that takes an address for the values is found out.

    Args:
        capacity: The most bytes that may be allocated at one time.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.buffers: list[PlanBuffer] = []
        """The buffers of the current call."""
        self.held = 0
        self._call = 0
        self._next = STAND_IN_BASE + GUARD
        self._starts: list[int] = []
        self._placed: dict[int, _Placed] = {}
        self._arguments: list[int] = []

    def begin(self) -> None:
        """Begins a call. What host code has allocated stays allocated, and is no part of the call.

        The arguments of the call before are gone.
        """
        self._call += 1
        self.buffers = []
        for start in self._arguments:
            self._drop(start)
        self._arguments = []
        self._next = self._end(self._starts[-1]) if self._starts else STAND_IN_BASE + GUARD

    def add(self, buffer: PlanBuffer) -> int:
        """Adds a buffer to the call and returns its address.

        Raises:
            OutOfMemoryError: The device has not so much memory, or the range has no more addresses.
        """
        is_argument = buffer.role in (BufferRole.INPUT, BufferRole.OUTPUT)
        start = self._first_gap(buffer.size) if is_argument else _aligned(self._next)
        if self.held + buffer.size > self.capacity or start + buffer.size > _LAST:
            raise OutOfMemoryError(
                f"out of device memory: {buffer.size} bytes asked for, {self.held} of "
                f"{self.capacity} live"
            )
        self._next = max(self._next, start + buffer.size + GUARD)
        self.held += buffer.size
        if is_argument:
            self._arguments.append(start)
        bisect.insort(self._starts, start)
        self._placed[start] = _Placed(start, buffer.size, self._call, len(self.buffers))
        self.buffers.append(buffer)
        return start

    def remove(self, address: int, step: int) -> None:
        """Frees a buffer before a step. An address of no buffer, or of an argument, is ignored."""
        if address not in self._placed or address in self._arguments:
            return
        placed = self._drop(address)
        if placed.call == self._call:
            buffer = self.buffers[placed.number]
            if buffer.role is BufferRole.SCRATCH:
                self.buffers[placed.number] = replace(buffer, end=step)

    def rewind(self, step: int, count: int) -> None:
        """Ends the lives of buffers before a step, and removes those that nothing can use.

        Args:
            step: How many steps the call has now.
            count: How many buffers it had when it had as many steps.
        """
        self.buffers = [
            replace(
                buffer,
                begin=min(buffer.begin, step),
                end=buffer.end if buffer.end is None else min(buffer.end, step),
            )
            for buffer in self.buffers
        ]
        while len(self.buffers) > count and self.buffers[-1].end is not None:
            self.buffers.pop()

    def place(self, address: int) -> tuple[int, int]:
        """Returns the number of the buffer at an address, and the offset in it.

        Raises:
            DeviceError: The address is in no buffer of this call.
        """
        index = bisect.bisect_right(self._starts, address) - 1
        placed = self._placed[self._starts[index]] if index >= 0 else None
        if placed is None or address > placed.start + placed.size:
            raise DeviceError(
                f"address {address:#x} is in no allocation: the memory was freed, or the address "
                "was computed"
            )
        if placed.call != self._call:
            raise DeviceError(
                "the call uses device memory that was allocated before it: each call must allocate "
                "and fill the memory that it uses"
            )
        return placed.number, address - placed.start

    def _drop(self, start: int) -> _Placed:
        """Forgets the buffer at an address."""
        placed = self._placed.pop(start)
        del self._starts[bisect.bisect_left(self._starts, start)]
        self.held -= placed.size
        return placed

    def _end(self, start: int) -> int:
        """Returns the first address behind a buffer and its guard."""
        return start + self._placed[start].size + GUARD

    def _first_gap(self, size: int) -> int:
        """Returns the lowest address with room for an argument."""
        free = _aligned(STAND_IN_BASE + GUARD)
        for start in self._starts:
            if free + size + GUARD <= start:
                break
            free = _aligned(self._end(start))
        return free


def _aligned(address: int) -> int:
    return -(-address // ALIGNMENT) * ALIGNMENT
