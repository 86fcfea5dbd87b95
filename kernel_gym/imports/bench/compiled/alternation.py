"""Times two functions in alternation, with cold caches, on inputs that a block never uses twice."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

PILOT_LEAD = 8
"""Cache flushes before a pilot block."""
MAX_LEAD = 60
"""The most cache flushes before a block."""
LEAD_HOST_FACTOR = 1.5
"""The flushes take this many times as long as the host needs for one call."""
GRAPH_BELOW_SECONDS = 100e-6
"""Shorter calls are replayed as graphs."""

ROUNDS = (4, 16)
"""The least and the most rounds. A round is one block of each side, in changing order."""
MAX_SECONDS = 2.0
"""Seconds after which no new round starts."""
FLUSHES = 2
"""How often the flush buffer is written before a call, as in comparisons."""
Function = Callable[..., object]
Sets = Sequence[Sequence[object]]


class BlockClock(Protocol):
    """Times blocks of calls on one kind of device."""

    def block(self, function: Function, sets: Sets) -> list[float]:
        """Calls a function once on each set with cold caches, and returns seconds of each call."""

    def replays(self, function: Function, sets: Sets) -> Callable[[], float] | None:
        """Records one call for each set, or returns None where that is not possible.

        Returns:
            A function that replays the calls with caches that are cold before the first one, and
            returns the mean seconds of a call.
        """


class HostClock:
    """Times calls on the CPU.

    Args:
        flush: Bytes that are written before each call.
    """

    def __init__(self, flush: int = 1 << 24) -> None:
        self._flush = torch.zeros(flush // 4, dtype=torch.int32)

    def block(self, function: Function, sets: Sets) -> list[float]:
        """Calls a function once on each set with cold caches, and returns seconds of each call."""
        seconds = []
        for values in sets:
            self._flush.fill_(1)
            start = time.perf_counter()
            function(*values)
            seconds.append(time.perf_counter() - start)
        return seconds

    def replays(self, function: Function, sets: Sets) -> Callable[[], float] | None:
        """Returns None: calls on the CPU are not recorded."""
        return None


class GpuClock:
    """Times calls on a GPU by its own clock.

    The GPU makes its caches cold for longer than the host needs for queueing a call, so that only
    the work on the GPU is timed, as in comparisons.

    Args:
        flush: Bytes that are written to make caches cold.
        device: The GPU.
    """

    def __init__(self, flush: int, device: torch.device) -> None:
        self._flush = torch.zeros(flush // 4, dtype=torch.int32, device=device)
        self._leads: dict[Function, int] = {}
        self._flush_seconds = self._seconds_of_flushes(PILOT_LEAD) / PILOT_LEAD

    def block(self, function: Function, sets: Sets) -> list[float]:
        """Calls a function once on each set with cold caches, and returns seconds of each call."""
        stamps, queued = [(_event(), _event()) for _ in sets], []
        lead = self._leads.get(function, PILOT_LEAD)
        for (start, end), values in zip(stamps, sets, strict=True):
            self._make_cold(lead)
            begin = time.perf_counter()
            start.record()
            function(*values)
            end.record()
            queued.append(time.perf_counter() - begin)
        torch.cuda.synchronize()
        wanted = LEAD_HOST_FACTOR * statistics.median(queued) / self._flush_seconds
        self._leads[function] = max(1, min(MAX_LEAD, math.ceil(wanted)))
        return [start.elapsed_time(end) * 1e-3 for start, end in stamps]

    def replays(self, function: Function, sets: Sets) -> Callable[[], float] | None:
        """Records one call for each set as a graph, or returns None if that fails."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                kept = [function(*values) for values in sets]
        except RuntimeError:  # a call waits for the GPU
            torch.cuda.synchronize()
            return None

        def replay() -> float:
            assert kept  # its memory belongs to the graph
            start, end = _event(), _event()
            self._make_cold(PILOT_LEAD)
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            return float(start.elapsed_time(end)) * 1e-3 / len(sets)

        return replay

    def _seconds_of_flushes(self, times: int) -> float:
        self._make_cold(1)
        start, end = _event(), _event()
        start.record()
        self._make_cold(times)
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end)) * 1e-3

    def _make_cold(self, times: int) -> None:
        for value in range(FLUSHES * times):
            self._flush.fill_(value)


class ModelledClock:
    """Reads the modelled seconds of calls on this process's simulated GPU, which have no noise.

    Args:
        seconds: Returns the modelled seconds that the GPU has been busy.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds

    def block(self, function: Function, sets: Sets) -> list[float]:
        """Calls a function once on each set, and returns the modelled seconds of each call."""
        stamps = [self._seconds()]
        for values in sets:
            function(*values)
            stamps.append(self._seconds())
        return [end - start for start, end in itertools.pairwise(stamps)]

    def replays(self, function: Function, sets: Sets) -> Callable[[], float] | None:
        """Returns None: the launch of a call is modelled without its host."""
        return None


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)


def alternate(
    sides: tuple[Function, Function], sets: Sets, clock: BlockClock
) -> tuple[float, float]:
    """Returns the median seconds of one call of each of two functions.

    Short calls are timed by replay, as in comparisons, where both sides can be recorded.

    Args:
        sides: The functions. Both were called before, so that they are compiled.
        sets: Arguments of calls, at least two sets with different values.
        clock: Times blocks on the device of the arguments.
    """
    pilot = [statistics.median(clock.block(side, sets)) for side in sides]
    if math.sqrt(pilot[0] * pilot[1]) < GRAPH_BELOW_SECONDS:
        replays = [clock.replays(side, sets) for side in sides]
        if replays[0] is not None and replays[1] is not None:
            return _medians([_one(replays[0]), _one(replays[1])])
    first, second = sides
    return _medians([lambda: clock.block(first, sets), lambda: clock.block(second, sets)])


def _one(replay: Callable[[], float]) -> Callable[[], list[float]]:
    return lambda: [replay()]


def _medians(blocks: Sequence[Callable[[], list[float]]]) -> tuple[float, float]:
    """Runs blocks of both sides, in an order that changes from round to round."""
    seconds: tuple[list[float], list[float]] = ([], [])
    least, most = ROUNDS
    begin = time.perf_counter()
    for number in range(most):
        if number >= least and time.perf_counter() - begin > MAX_SECONDS:
            break
        for side in ((0, 1), (1, 0))[number % 2]:
            seconds[side].extend(blocks[side]())
    return statistics.median(seconds[0]), statistics.median(seconds[1])
