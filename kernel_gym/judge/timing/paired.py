"""Paired timing: runs baseline and candidate alternately, and computes an interval of their ratio.

This module implements rules 14 to 17 of docs/protocol.md. A pair is one call of each side on the
same inputs. The order of the two calls is drawn for each pair.

The time of a launch differs between two processes, and the difference stays as long as they live.
So both sides of a pair run in one launcher, which has the code and the memory of one side at a
time. This launcher has run kernels of the candidate, which could have disturbed it. So the baseline
is also called in a separate launcher from time to time: it may not be slower beside the candidate
than in that launcher.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kernel_gym.devices.base import Failed, FailureKind, InfraError, TimedCall, TimedSession
from kernel_gym.judge.attempt import Verdict
from kernel_gym.judge.protocol import TIMING
from kernel_gym.judge.timing.log_ratios import (
    LogRatioInterval,
    two_stage_interval,
)
from kernel_gym.tasks.problem import Value

Ended = Failed | Verdict
"""Why a comparison ended without a result: the candidate failed, or a timed call was wrong."""
Inputs = Mapping[str, Value]


@dataclass
class PairedResult:
    """The result of a comparison. Seconds are of one call."""

    baseline: list[float] = field(default_factory=list)
    """Seconds of the baseline in each pair."""
    candidate: list[float] = field(default_factory=list)
    checks: list[tuple[float, float]] = field(default_factory=list)
    """Seconds of the baseline beside the candidate and in its own launcher, on the same inputs;
    empty if it never ran beside the candidate."""
    graph: bool = True
    """Whether calls were replays of graphs."""

    @property
    def effects(self) -> list[float]:
        """For each pair log(baseline / candidate)."""
        return [math.log(b / c) for b, c in zip(self.baseline, self.candidate, strict=True)]

    @property
    def interval(self) -> LogRatioInterval:
        """The interval of all pairs so far.

        It is wider if the sides had two launchers. It is lower if the baseline was slower beside
        the candidate than alone, because the candidate may have caused it.
        """
        between = 0.0 if self.checks else TIMING.launcher_seconds / self.candidate_seconds
        paired = two_stage_interval(self.effects)
        return LogRatioInterval(paired.mean - math.log1p(self.slowed), paired.half + between)

    @property
    def baseline_seconds(self) -> float:
        """The median of the baseline."""
        return statistics.median(self.baseline)

    @property
    def candidate_seconds(self) -> float:
        """The median of the candidate."""
        return statistics.median(self.candidate)

    @property
    def slowed(self) -> float:
        """The share by which the baseline was slower beside the candidate than alone.

        It is the median of the checks, each of which compares calls on the same inputs, as times
        may depend on them. It is 0 if the difference is what two launchers may differ by.
        """
        excess = [(beside - TIMING.launcher_seconds) / alone - 1 for beside, alone in self.checks]
        if not excess or statistics.median(excess) <= TIMING.beside_share:
            return 0.0
        return statistics.median(beside / alone for beside, alone in self.checks) - 1


@dataclass(frozen=True)
class PairedSetup:
    """The parts of a comparison other than its sides."""

    draw: Callable[[], Inputs]
    """Draws the inputs of a call."""
    place: Callable[[Inputs, bool], TimedCall]
    """Writes the inputs of a call, and makes room for its outputs if they are kept."""
    verify: Callable[[Inputs, TimedCall], Ended | None]
    """Called after a call whose outputs were kept. Returns what is wrong with them."""
    clock: Callable[[], float]
    """Monotonic seconds."""
    rng: random.Random
    """Decides which side of a pair is first, and which calls are verified."""


class PairedBenchmark:
    """Times the pairs of one workload.

    Args:
        alone: The baseline in a launcher of its own. Its failures are failures of the machine.
        beside: The baseline in the launcher of the candidate; None if it cannot run there.
        candidate: The other side. Its failure ends the comparison.
        setup: The other parts of the comparison.
    """

    def __init__(
        self,
        alone: TimedSession,
        beside: TimedSession | None,
        candidate: TimedSession,
        setup: PairedSetup,
    ) -> None:
        self._alone, self._beside, self._candidate = alone, beside, candidate
        self._setup = setup
        self.result = PairedResult()
        """All pairs so far."""
        self._seconds_left = TIMING.max_seconds
        self._graph = True
        self._verified = False

    def measure(self, pairs: int) -> Ended | None:
        """Measures until the result has so many pairs, or no time is left.

        The number of pairs is fixed after the first ones, as in Stein's procedure with two stages
        (`pairs_needed`): nobody looks at the mean until all pairs are measured.

        Returns:
            The failure that ended the comparison, if there was one.

        Raises:
            InfraError: The baseline failed in its own launcher.
        """
        result, clock = self.result, self._setup.clock
        ended = self._pair(PairedResult(), None)  # warms up both sides
        end = clock() + self._seconds_left
        while ended is None and len(result.effects) < pairs:
            if len(result.effects) >= TIMING.min_pairs and clock() > end:
                break
            ended = self._pair(result, len(result.effects))
        self._seconds_left = end - clock()
        result.graph = self._graph
        return ended

    def _pair(self, result: PairedResult, number: int | None) -> Ended | None:
        """Times a call of each side on the same inputs, and adds the times to a result.

        Args:
            result: Takes the times.
            number: The pairs before this one; None for the first one, which is not counted.
        """
        inputs = self._setup.draw()
        kept = number is not None and self._draws(number)
        call = self._setup.place(inputs, kept)
        baseline_first = self._setup.rng.random() < 0.5
        if self._beside is None:
            pair = self._in_two_launchers(inputs, call, baseline_first)
        else:
            order = [self._beside, self._candidate]
            pair = self._times(self._candidate, order if baseline_first else order[::-1], call)
        if isinstance(pair, Failed):
            return pair
        wrong = self._setup.verify(inputs, call) if kept else None
        if wrong is not None:
            return wrong
        baseline, candidate = pair if baseline_first else reversed(pair)
        if self._beside is not None and (number or 0) % TIMING.alone_every == 0:
            result.checks.append((baseline, self._alone_at(inputs, baseline_first)))
        result.baseline.append(baseline)
        result.candidate.append(candidate)
        return None

    def _in_two_launchers(
        self, inputs: Inputs, call: TimedCall, baseline_first: bool
    ) -> list[float] | Failed:
        """Times a baseline that cannot run beside the candidate; returns seconds in the order."""
        first = self._trusted(inputs) if baseline_first else None
        if first is not None:  # what it was given may be changed
            call = TimedCall(self._setup.place(inputs, False).inputs, call.results)
        candidate = self._times(self._candidate, [self._candidate], call)
        if isinstance(candidate, Failed):
            return candidate
        return [*candidate, self._trusted(inputs)] if first is None else [first, *candidate]

    def _trusted(self, inputs: Inputs) -> float:
        """Times the baseline in its own launcher, on inputs that are written again."""
        return self._in_own_launcher(inputs, [self._alone])[0]

    def _alone_at(self, inputs: Inputs, first: bool) -> float:
        """Times the baseline as the first or second call: a GPU is slower right after another."""
        return self._in_own_launcher(inputs, [self._alone] * (1 if first else 2))[-1]

    def _in_own_launcher(self, inputs: Inputs, order: Sequence[TimedSession]) -> list[float]:
        seconds = self._times(self._alone, order, self._setup.place(inputs, False))
        if isinstance(seconds, Failed):
            raise InfraError(f"the baseline failed while it was timed: {seconds.message}")
        return seconds

    def _times(
        self, host: TimedSession, order: Sequence[TimedSession], call: TimedCall
    ) -> list[float] | Failed:
        seconds = host.time_calls(order, call, self._graph)
        if seconds is None:  # a reference waits for the device: neither side has graphs then
            self._graph = False
            seconds = host.time_calls(order, call, graph=False)
        return (
            Failed(FailureKind.RUNTIME, "its calls cannot be timed") if seconds is None else seconds
        )

    def _draws(self, number: int) -> bool:
        """Decides whether a call of the candidate is verified; at least one of the first is."""
        last = number == TIMING.min_pairs - 1 and not self._verified
        chosen = self._setup.rng.random() < TIMING.verified_share or last
        self._verified = self._verified or chosen
        return chosen
