"""Paired timing: baseline and candidate in turn on one GPU, and an interval of their ratio.

Rules 11-17 of the evaluation protocol. Both sides hold the same ring of inputs at the same
addresses, each in its own worker; only one runs at a time, the other is stopped. Blocks alternate
ABBA, so that a drift of the machine's clocks falls on both alike.

The candidate's stamps come from its own process and may be false. What is paid is therefore bounded
by an effect that does without them: the judge's clock says how long a block of the candidate took,
and how much of that is no work is taken from the baseline's block beside it. That effect is noisy,
so that stamps may be better by a part that is free (`free_seconds`), and by no more.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

from kernel_gym.judge.protocol import (
    BLOCK_CALLS,
    BLOCK_SECONDS,
    CHARGE_LIMIT,
    CLAIM_SECONDS,
    CONFIDENCE,
    FREE_WALL,
    GRAPH_BELOW,
    HALF_WIDTH,
    HALF_WIDTH_SHARE,
    LEAD_HOSTS,
    LONG_CALL,
    MAX_LEAD,
    MAX_PAIRS,
    MAX_SECONDS,
    MIN_PAIRS,
    MOST_LONGER,
    MOST_REPLAYS,
    PILOT_CALLS,
    PILOT_LEAD,
    RATIO_CLAMP,
    TRIMMED,
    VERIFY_SHARE,
    WALL_LIMIT,
    WALL_QUANTILE,
    WALL_SHARE,
)


class Timed(Protocol):
    """A side of the comparison: a worker that holds the ring."""

    def block(self, count: int, lead: int) -> Any:
        """Times calls one by one, after as many flushes as `lead` says."""

    def capture(self) -> Any:
        """Makes a graph of one round over the ring."""

    def replay(self, count: int) -> Any:
        """Times replays of it."""


@dataclass(frozen=True)
class Interval:
    """Trimmed mean of log(baseline / candidate) and the half-width of its t-interval."""

    mean: float
    half: float

    @property
    def settled(self) -> bool:
        """Narrow enough to stop, or beyond what is paid, where its width does not matter.

        A decision that is clear earlier would leave a noisy reward.
        """
        least, most = map(math.log, RATIO_CLAMP)
        beyond = self.mean - self.half > most or self.mean + self.half < least
        return beyond or self.half < max(HALF_WIDTH, HALF_WIDTH_SHARE * abs(self.mean))


@dataclass
class Pairs:
    """What a comparison found. Seconds are medians of one call."""

    baseline_seconds: float
    candidate_seconds: float
    effects: list[float]
    """Of each pair of blocks log(baseline / candidate), by the stamps of both."""
    graph: bool
    bounds: list[float] = field(default_factory=list)
    """The same by the judge's clock in the candidate's place of stamps."""
    walls: list[tuple[float, float]] = field(default_factory=list)
    """Wall-clock seconds that the stamps do not account for, by block: baseline's, candidate's."""
    claimed: float = 0.0
    """What the candidate's stamps of one block come to, seconds: median over the blocks."""
    clocked: float = 0.0
    """The same by the judge's clock."""

    @property
    def charge(self) -> float:
        """By how much the mean effect is above what the judge's clock allows, 0 for an honest one.

        Both means are trimmed in the same way: blocks that are false by turns gain nothing.
        """
        if not self.bounds:
            return 0.0
        most = interval(self.bounds).mean + math.log1p(free_seconds(self.clocked) / self.clocked)
        return max(0.0, interval(self.effects).mean - most)

    @property
    def interval(self) -> Interval:
        """The interval of all pairs so far, within what the judge's clock allows."""
        by_stamps = interval(self.effects)
        return replace(by_stamps, mean=by_stamps.mean - self.charge)

    @property
    def unaccounted(self) -> float:
        """Seconds a block in which the judge saw more pass than the candidate's stamps say."""
        import numpy as np

        ours, theirs = np.quantile(np.array(self.walls), WALL_QUANTILE, axis=0)
        return float(theirs - ours)

    @property
    def hidden(self) -> float:
        """Share of the claimed time that is unaccounted for."""
        return self.unaccounted / self.claimed

    @property
    def agrees(self) -> bool:
        """Whether the candidate's stamps can be true by the judge's clock (rule 13)."""
        return self.unaccounted <= WALL_LIMIT[0] + WALL_LIMIT[1] * self.claimed

    @property
    def late(self) -> bool:
        """Whether another try is worth it: an honest candidate is charged for a slow host."""
        return not self.agrees or self.charge > CHARGE_LIMIT


@dataclass(frozen=True)
class Sample:
    """What one block says, seconds.

    Attributes:
        call: the median of the stamps, of one call.
        claimed: the median times the number of stamps. Not their sum: of that, many a distribution
            has a smaller median.
        rest: what passed by the judge's clock beyond `claimed`.
    """

    call: float
    claimed: float
    rest: float

    def by_the_clock(self, baseline: Sample) -> float:
        """Seconds of one call by the judge's clock; half of what is claimed at least.

        Args:
            baseline: the block beside it. Both sides flush as often and are asked in the same way,
                so that what passes beyond its stamps is no work.
        """
        seconds = self.claimed + self.rest - baseline.rest
        return self.call * max(0.5, seconds / self.claimed)


def free_seconds(block: float) -> float:
    """Seconds by which the stamps of a block may be better than the judge's clock says.

    An honest candidate's host takes some 0.1 ms more or less for a block than the baseline's.

    Args:
        block: seconds that the calls of a block took by the judge's clock.
    """
    return min(FREE_WALL[0] + FREE_WALL[1] * block, WALL_SHARE * block)


def interval(effects: Sequence[float]) -> Interval:
    """Yuen's t-interval of the trimmed mean: one block that met a hiccup does not decide.

    K. K. Yuen, Biometrika 61(1), 1974: the winsorized deviation and the degrees of freedom of what
    is left after trimming.

    Args:
        effects: log ratios, at least six.
    """
    import numpy as np

    ordered, count = np.sort(effects), len(effects)
    cut = int(TRIMMED * count)
    left = count - 2 * cut
    kept = ordered[cut : count - cut]
    spread = float(np.clip(ordered, kept[0], kept[-1]).std(ddof=1))
    error = spread * math.sqrt(count - 1) / math.sqrt(left * (left - 1))
    return Interval(float(kept.mean()), _student(left - 1) * error)


@cache
def _student(freedom: int) -> float:
    """The quantile of Student's t that an interval takes."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + CONFIDENCE / 2))


class Comparison:
    """Runs the blocks of one workload.

    Args:
        baseline: one side.
        candidate: the other; its failure ends the comparison.
        ring: how many input sets both hold.
        prepare: called before each block with the side that comes next and its number of calls.
        verify: called after some of the candidate's blocks with the number of its calls (of the
            last replay's, when there were several); returns what is wrong with them.
        graphs: whether short calls may be replayed as graphs.
        flush: seconds that one flush of the caches takes.
        clock: seconds that only grow.
        rng: decides which blocks are verified.
        longer: blocks are so many times as long as usual.
    """

    def __init__(
        self,
        baseline: Timed,
        candidate: Timed,
        ring: int,
        prepare: Callable[[Timed, int], None],
        verify: Callable[[int], Any],
        graphs: bool,
        flush: float,
        clock: Callable[[], float],
        rng: random.Random,
        longer: int = 1,
    ) -> None:
        self._longer = longer
        self._sides = (baseline, candidate)
        self._ring = ring
        self._prepare, self._verify = prepare, verify
        self._graphs, self._flush, self._clock, self._rng = graphs, flush, clock, rng
        self._count, self._replays = min(PILOT_CALLS, ring), 0
        self._single = (False, False)
        self._lead = PILOT_LEAD
        self._host = 0.0
        self._verified = False

    def run(self) -> Pairs | Any:
        """The pairs, or the failure that ended it."""
        pilot = self._pilot()
        if not isinstance(pilot, tuple):
            return pilot
        self._choose_method(*pilot)
        pairs = Pairs(pilot[0], pilot[1], effects=[], graph=self._replays > 0)
        end = self._clock() + MAX_SECONDS
        times: tuple[list[float], list[float]] = ([], [])
        claimed: list[float] = []
        clocked: list[float] = []
        while not self._done(pairs, end):
            samples = self._round(min(pilot), len(times[1]))
            if not isinstance(samples, list):
                return samples
            for ours, theirs in ((samples[0], samples[1]), (samples[3], samples[2])):
                pairs.effects.append(math.log(ours.call / theirs.call))
                seconds = theirs.by_the_clock(ours)
                pairs.bounds.append(math.log(ours.call / seconds))
                clocked.append(seconds / theirs.call * theirs.claimed)
                pairs.walls.append((ours.rest, theirs.rest))
                times[0].append(ours.call)
                times[1].append(theirs.call)
                claimed.append(theirs.claimed)
            pairs.claimed, pairs.clocked = map(statistics.median, (claimed, clocked))
        pairs.baseline_seconds, pairs.candidate_seconds = map(statistics.median, times)
        pairs.candidate_seconds *= math.exp(pairs.charge)
        return pairs

    def _round(self, shortest: float, blocks: int) -> list[Sample] | Any:
        """Four blocks, or the failure of one.

        Args:
            shortest: seconds of a call of the faster side.
            blocks: how many the candidate has had, the pilot not counted.
        """
        if self._replays:
            self._count = self._rng.randint(self._replays, 2 * self._replays)
        self._lead = self._needed_lead(shortest)
        hosts: tuple[list[float], list[float]] = ([], [])
        samples = []
        for side in (0, 1, 1, 0):
            block = self._block(side, verified=side == 1 and self._draw(blocks + len(hosts[1])))
            if not hasattr(block, "stamps"):
                return block
            hosts[side].append(block.host)
            samples.append(self._sample(block))
        # the slower side's, but one slow block does not make all of the next round longer
        self._host = max(map(min, hosts))
        return samples

    def _sample(self, block: Any) -> Sample:
        median = statistics.median(block.stamps)
        claimed = median * len(block.stamps)
        return Sample(median / (self._ring if self._replays else 1), claimed, block.wall - claimed)

    def _done(self, found: Pairs, end: float) -> bool:
        pairs = len(found.effects)
        if pairs < MIN_PAIRS:
            return False
        return pairs >= MAX_PAIRS or self._clock() > end or found.interval.settled

    def _pilot(self) -> tuple[float, float] | Any:
        """Median seconds of a call of each side, after one block that warms it up."""
        medians = []
        for side in (0, 1):
            block = self._block(side)
            if not hasattr(block, "stamps"):
                return block
            medians.append(statistics.median(block.stamps))
            self._host = max(self._host, block.host)
        return medians[0], medians[1]

    def _choose_method(self, baseline: float, candidate: float) -> None:
        low, high = BLOCK_CALLS
        middle = math.sqrt(baseline * candidate)
        seconds = max(BLOCK_SECONDS, CLAIM_SECONDS * middle / candidate)
        calls = int(self._longer * min(seconds, MOST_LONGER * BLOCK_SECONDS) / middle)
        short = self._graphs and middle < GRAPH_BELOW
        if short and all(side.capture() is None for side in self._sides):
            most = self._longer * MOST_REPLAYS // 2
            self._replays = min(max(1, calls // (2 * self._ring)), most)
            return
        self._count = min(max(low, calls), self._longer * high, self._ring)
        self._single = (baseline > LONG_CALL, candidate > LONG_CALL)

    def _needed_lead(self, shortest: float) -> int:
        """Flushes that keep the GPU busy until the host is ahead of it for the whole block.

        A stamp that the GPU takes before its call is queued has the host's time in it. The first
        call is behind a flush of its own; half of the host's time is to spare. The number goes by
        the last round, and is the same for both sides, so that it shows in neither's wall-clock
        time alone.
        """
        behind = max(0.0, self._host - shortest - self._flush)
        seconds = LEAD_HOSTS * self._host - self._flush + (self._count - 1) * behind
        return min(max(1, math.ceil(seconds / self._flush)), self._longer * MAX_LEAD)

    def _draw(self, number: int) -> bool:
        """Whether the candidate's next block is verified: a share of all, and one of the first."""
        last = number == MIN_PAIRS - 1 and not self._verified
        chosen = self._rng.random() < VERIFY_SHARE or last
        self._verified = self._verified or chosen
        return chosen

    def _block(self, side: int, verified: bool = False) -> Any:
        """One block, or the failure that it or its outputs are."""
        timed = self._sides[side]
        count = 1 if self._single[side] else self._count
        lead = self._lead + self._count - count  # both sides flush as often: their walls compare
        calls = self._ring if self._replays else count
        self._prepare(timed, calls)
        block = timed.replay(count) if self._replays else timed.block(count, lead)
        wrong = self._verify(calls) if verified and hasattr(block, "stamps") else None
        return block if wrong is None else wrong


def quantile_of_noise(effects: Mapping[str, Sequence[float]]) -> float:
    """95th percentile of |log ratio| of A/A comparisons: the noise floor (rule 18)."""
    import numpy as np

    everything = [abs(effect) for side in effects.values() for effect in side]
    return float(np.quantile(everything, 0.95))
