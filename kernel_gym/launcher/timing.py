"""Times calls one after the other: each with inputs of its own, cold caches and two events.

A call is prepared and timed by the same code, whatever does its work: the steps of a plan, or
PyTorch. All is queued on one stream, so that no call runs beside another one. Writing to a large
piece of memory makes the caches cold. It also keeps the device busy until the host has queued the
call behind it, so that the time between the two events has no time of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kernel_gym.launcher.driver import GpuDriver

_WORD_BYTES = 4


class Work(Protocol):
    """What a call does, on the stream of a driver."""

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
    def recaptured(self) -> bool:
        """Whether `begin` changes what was captured, so that each call has a graph of its own."""

    def queue_results(self, results: Sequence[int]) -> None:
        """Queues copies of outputs, then inputs, to memory of the host."""


@dataclass(frozen=True)
class CallPlaces:
    """Where a call has its inputs and leaves its results, in memory of the host."""

    inputs: int
    results: tuple[int, ...] = ()
    """Of each output, then of each input; empty if nobody wants them."""


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

    def seconds(self, work: Work, calls: Sequence[CallPlaces], graph: bool) -> list[float]:
        """Returns the seconds of each call.

        Args:
            work: What a call does.
            calls: Its inputs and results.
            graph: Whether the work is captured and replayed as one graph.
        """
        driver = self._driver
        events = [(driver.create_event(), driver.create_event()) for _ in calls]
        start, end = (work.queue, _nothing)
        for number, (places, (before, after)) in enumerate(zip(calls, events, strict=True)):
            work.begin(places.inputs)
            if graph and (number == 0 or work.recaptured):
                end()
                start, end = work.capture()
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

    def _make_cold(self) -> None:
        self._written = (self._written + 1) % 256
        pattern = bytes([self._written]) * _WORD_BYTES
        self._driver.fill(self._caches, pattern, self._flush // _WORD_BYTES)


def _nothing() -> None:
    """Destroys no graph."""
