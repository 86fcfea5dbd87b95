"""Paired timing: baseline and candidate in turn on one GPU, and an interval of their ratio.

This module implements rules 14 to 17 of docs/protocol.md. Blocks alternate in the order ABBA
(baseline, candidate, candidate, baseline), so that a drift of the GPU's clocks affects both sides
alike. The two sides of a pair have the same inputs, and no inputs are used in two pairs.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_gym.devices.base import Failed, FailureKind, InfraError, TimedCall, TimedSession
from kernel_gym.judge.attempt import Verdict
from kernel_gym.judge.protocol import TIMING
from kernel_gym.judge.timing.log_ratios import LogRatioInterval, interval

Ended = Failed | Verdict
"""Why a comparison ended without a result: the candidate failed, or a timed call was wrong."""


@dataclass
class PairedResult:
    """The result of a comparison. Seconds are of one call."""

    baseline_seconds: float
    candidate_seconds: float
    effects: list[float]
    """For each pair of blocks log(baseline / candidate)."""
    graph: bool
    """Whether calls were replays of graphs."""

    @property
    def interval(self) -> LogRatioInterval:
        """The interval of all pairs so far."""
        return interval(self.effects)


@dataclass(frozen=True)
class PairedSetup:
    """The parts of a comparison other than its two sides."""

    draw: Callable[[int, int | None], Sequence[TimedCall]]
    """Draws inputs for so many calls. One of them keeps its outputs, if its index is given."""
    most_calls: int
    """The most calls of a block."""
    verify: Callable[[], Ended | None]
    """Called after a candidate's block that keeps outputs. Returns what is wrong with them."""
    clock: Callable[[], float]
    """Monotonic seconds."""
    rng: random.Random
    """Decides which blocks are verified."""


class PairedBenchmark:
    """Runs the blocks of one workload.

    Args:
        baseline: One side. Its failure is a failure of the machine.
        candidate: The other side. Its failure ends the comparison.
        setup: The other parts of the comparison.
    """

    def __init__(self, baseline: TimedSession, candidate: TimedSession, setup: PairedSetup) -> None:
        self._baseline, self._candidate, self._setup = baseline, candidate, setup
        self._graph = True
        self._verified = False

    def run(self) -> PairedResult | Ended:
        """Returns the result, or the failure that ended the comparison.

        Raises:
            InfraError: The baseline failed.
        """
        calls = min(TIMING.pilot_calls, self._setup.most_calls)
        pilot = self._pair(calls, baseline_first=True)
        if not isinstance(pilot, tuple):
            return pilot
        middle = math.sqrt(pilot[0] * pilot[1])
        calls = min(int(TIMING.block_seconds / middle), TIMING.max_calls, self._setup.most_calls)
        calls = max(1, calls)
        pairs: list[tuple[float, float]] = []
        result = PairedResult(*pilot, effects=[], graph=self._graph)
        end = self._setup.clock() + TIMING.max_seconds
        while not self._done(result, end):
            pair = self._pair(calls, baseline_first=len(pairs) % 2 == 0, number=len(pairs))
            if not isinstance(pair, tuple):
                return pair
            pairs.append(pair)
            result.effects.append(math.log(pair[0] / pair[1]))
        result.baseline_seconds, result.candidate_seconds = (
            statistics.median(side) for side in zip(*pairs, strict=True)
        )
        return result

    def _pair(
        self, calls: int, baseline_first: bool, number: int | None = None
    ) -> tuple[float, float] | Ended:
        """Runs a block of each side on the same inputs; returns seconds of a call of each.

        Args:
            calls: The calls of a block.
            baseline_first: The order of the two blocks.
            number: The pairs before this one; None for the pilot, which is not verified.
        """
        kept = None
        if number is not None and self._draws(number):
            kept = self._setup.rng.randrange(calls)
        drawn = self._setup.draw(calls, kept)
        baseline = self._baseline_block(drawn) if baseline_first else 0.0
        candidate = self._block(self._candidate, drawn)
        if isinstance(candidate, Failed):
            return candidate
        wrong = self._setup.verify() if kept is not None else None
        if wrong is not None:
            return wrong
        return baseline or self._baseline_block(drawn), candidate

    def _baseline_block(self, drawn: Sequence[TimedCall]) -> float:
        plain = [TimedCall(call.inputs) for call in drawn]
        seconds = self._block(self._baseline, plain)
        if isinstance(seconds, Failed):
            raise InfraError(f"the baseline failed while it was timed: {seconds.message}")
        return seconds

    def _block(self, side: TimedSession, calls: Sequence[TimedCall]) -> float | Failed:
        """Runs a block; returns the trimmed mean of its calls."""
        seconds = side.time_calls(calls, self._graph)
        if seconds is None:  # a reference waits for the device: neither side has graphs then
            self._graph = False
            seconds = side.time_calls(calls, graph=False)
        if seconds is None:
            return Failed(FailureKind.RUNTIME, "its calls cannot be timed")
        return seconds if isinstance(seconds, Failed) else trimmed_mean(seconds)

    def _draws(self, number: int) -> bool:
        """Decides whether the candidate's next block is verified; at least one of the first is."""
        last = number == TIMING.min_pairs - 1 and not self._verified
        chosen = self._setup.rng.random() < TIMING.verified_share or last
        self._verified = self._verified or chosen
        return chosen

    def _done(self, result: PairedResult, end: float) -> bool:
        pairs = len(result.effects)
        if pairs < TIMING.min_pairs or pairs % 2:
            return False
        return pairs >= TIMING.max_pairs or self._setup.clock() > end or result.interval.settled


def trimmed_mean(seconds: Sequence[float]) -> float:
    """Returns the mean without the largest and the smallest fifth."""
    ordered = sorted(seconds)
    cut = int(TIMING.trimmed_share * len(ordered))
    return statistics.fmean(ordered[cut : len(ordered) - cut])
