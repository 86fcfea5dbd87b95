"""Times one call: with inputs of its own, cold caches and an event on either side.

A call is prepared and timed by the same code, whatever does its work: the steps of a plan, or
PyTorch. All is queued on one stream, so that no call runs beside another one. Writing to a large
piece of memory makes the caches cold. More such writes before it keep the device busy until the
host has queued the call: a device that waits for the host takes up to a microsecond more for a
launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kernel_gym.launcher.driver import GpuDriver

_WORD_BYTES = 4
_QUEUE_SECONDS = 100e-6
"""Seconds that a host needs to queue a call, besides those of its inputs and of the flush."""
_MAX_LEAD = 200
"""Most writes before a call."""


@dataclass(frozen=True)
class MemoryPlace:
    """A place that the judge shares with its launchers, for inputs or for a result."""

    address: int
    on_device: bool
    """Whether it is the judge's memory of the device, or memory of the host."""

    def copied(self, driver: GpuDriver, target: int, size: int) -> MemoryPlace:
        """Queues a copy of the first bytes; returns the place behind them."""
        copy = driver.copy if self.on_device else driver.queue_copy_in
        if size:
            copy(target, self.address, size)
        return MemoryPlace(self.address + size, self.on_device)

    def receive(self, driver: GpuDriver, source: int, size: int) -> None:
        """Queues a copy of bytes of the device to this place."""
        if self.on_device and size:
            driver.copy(self.address, source, size)
        else:
            driver.queue_copy_out(self.address, source, size)


class Work(Protocol):
    """Work of a call on the stream of a driver."""

    def prepare(self, inputs: MemoryPlace, graph: bool) -> None:
        """Does what a call needs before the device is busy with it."""

    def begin(self, inputs: MemoryPlace) -> None:
        """Queues what makes a call independent of the one before."""

    def start(self, graph: bool) -> None:
        """Queues the work, as the replay of a graph or not."""

    def queue_results(self, results: Sequence[MemoryPlace]) -> None:
        """Queues copies of outputs, then inputs, as many as there are places."""


class CallTimer:
    """Times calls on a device.

    Args:
        driver: The device.
        flush: Bytes that are written before each call.
    """

    def __init__(self, driver: GpuDriver, flush: int) -> None:
        self._driver, self._flush = driver, flush
        self._caches = driver.allocate(flush)
        self._written = 0
        self._before, self._after = driver.create_event(), driver.create_event()
        self._make_cold()
        driver.record_event(self._before)
        self._make_cold()
        driver.record_event(self._after)
        seconds = max(1e-6, driver.elapsed(self._before, self._after))
        self._lead = min(_MAX_LEAD, int(_QUEUE_SECONDS / seconds))

    def seconds(
        self, work: Work, inputs: MemoryPlace, results: Sequence[MemoryPlace], graph: bool
    ) -> float:
        """Returns the seconds of one call.

        Args:
            work: What the call does.
            inputs: Its inputs.
            results: Where its outputs go; empty if nobody wants them.
            graph: Whether the work is captured and replayed as one graph.
        """
        driver = self._driver
        work.prepare(inputs, graph)
        for _ in range(self._lead):
            self._make_cold()
        work.begin(inputs)
        self._make_cold()
        driver.record_event(self._before)
        work.start(graph)
        driver.record_event(self._after)
        work.queue_results(results)
        driver.wait()
        return driver.elapsed(self._before, self._after)

    def _make_cold(self) -> None:
        self._written = (self._written + 1) % 256
        pattern = bytes([self._written]) * _WORD_BYTES
        self._driver.fill(self._caches, pattern, self._flush // _WORD_BYTES)
