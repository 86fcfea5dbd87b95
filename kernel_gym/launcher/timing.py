"""Times calls one after the other: each with inputs of its own, cold caches and two events.

A call is prepared and timed by the same code, whatever does its work: the steps of a plan, or
PyTorch. All is queued on one stream, so that no call runs beside another one. Writing to a large
piece of memory makes the caches cold. More such writes before the first call keep the device busy
until the host has queued all calls: a device that waits for the host takes up to a microsecond more
for a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kernel_gym.launcher.driver import GpuDriver

_WORD_BYTES = 4
_QUEUE_SECONDS = 200e-6
"""Seconds that a slow host needs to queue a call."""
_COPY_RATE = 50e9
"""Bytes/s of copies from the host, at most: so long the device is busy with inputs of a call."""
_MAX_LEAD = 200
"""Most writes before the first call."""


class Work(Protocol):
    """Work of a call on the stream of a driver."""

    def begin(self, inputs: int) -> None:
        """Queues what makes a call independent of the one before.

        Args:
            inputs: Where the inputs begin, in memory of the host.
        """

    def queue(self) -> None:
        """Queues the work."""

    def capture(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """Captures the work as a graph; returns what queues the graph, and what destroys it."""

    @property
    def input_bytes(self) -> int:
        """Bytes that `begin` copies from the host."""

    @property
    def recaptured(self) -> bool:
        """Whether `begin` changes what was captured, so that each call has a graph of its own."""

    def queue_results(self, results: Sequence[int]) -> None:
        """Queues copies of outputs, then inputs, to memory of the host."""


@dataclass(frozen=True)
class CallPlaces:
    """Where a call has its inputs and leaves its results, in memory of the host."""

    inputs: int
    results: tuple[int, ...] = ()
    """Places of each output, then of each input; empty if nobody wants them."""


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
        before, after = driver.create_event(), driver.create_event()
        self._make_cold()
        driver.record_event(before)
        self._make_cold()
        driver.record_event(after)
        self._flush_seconds = max(1e-6, driver.elapsed(before, after))
        driver.destroy_event(before)
        driver.destroy_event(after)

    def seconds(self, work: Work, calls: Sequence[CallPlaces], graph: bool) -> list[float]:
        """Returns the seconds of each call.

        Args:
            work: What a call does.
            calls: Its inputs and results.
            graph: Whether the work is captured and replayed as one graph.
        """
        driver = self._driver
        events = [(driver.create_event(), driver.create_event()) for _ in calls]
        start, end = work.queue, _nothing
        if graph and not work.recaptured:
            start, end = work.capture()
        self._keep_busy(len(calls), work.input_bytes)
        for places, (before, after) in zip(calls, events, strict=True):
            work.begin(places.inputs)
            if work.recaptured:  # the code was loaded again, for which the device was waited for
                end()
                start, end = work.capture() if graph else (work.queue, _nothing)
                self._keep_busy(1, 0)
            self._make_cold()
            driver.record_event(before)
            start()
            driver.record_event(after)
            work.queue_results(places.results)
        driver.wait()
        end()
        seconds = [driver.elapsed(before, after) for before, after in events]
        for event in (event for pair in events for event in pair):
            driver.destroy_event(event)
        return seconds

    def _keep_busy(self, calls: int, input_bytes: int) -> None:
        """Queues writes until the host has queued so many calls."""
        busy = self._flush_seconds + input_bytes / _COPY_RATE
        seconds = _QUEUE_SECONDS + calls * max(0.0, _QUEUE_SECONDS - busy)
        for _ in range(min(_MAX_LEAD, int(seconds / self._flush_seconds))):
            self._make_cold()

    def _make_cold(self) -> None:
        self._written = (self._written + 1) % 256
        pattern = bytes([self._written]) * _WORD_BYTES
        self._driver.fill(self._caches, pattern, self._flush // _WORD_BYTES)


def _nothing() -> None:
    """Destroys no graph."""
