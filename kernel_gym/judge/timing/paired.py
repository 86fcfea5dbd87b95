"""Paired timing: baseline and candidate in turn on one GPU, and an interval of their ratio.

This module implements rules 11 to 17 of docs/protocol.md. Both sides hold the same pool of inputs
at the same addresses, each in its own worker. One worker runs at a time, the other is stopped.
Blocks alternate in the order ABBA (baseline, candidate, candidate, baseline), so that a drift of
the GPU's clocks affects both sides alike.

The candidate's stamps come from its own process and may be false. So the paid effect is bounded by
an effect that does not use them. The judge's clock says how long a block of the candidate took, and
the baseline's block beside it says how much of that is overhead. This bound is noisy, so stamps may
be better than the clock by a small amount (`free_seconds`).
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from kernel_gym.devices.base import Failed, InfraError, TimedBlock
from kernel_gym.judge.attempt import Verdict
from kernel_gym.judge.protocol import CLOCK, TIMING
from kernel_gym.judge.timing.log_ratios import LogRatioInterval, interval

Ended = Failed | Verdict
"""Why a comparison ended without a result: the worker failed, or a timed call was wrong."""


class Side(Protocol):
    """One side of a comparison: a session whose worker holds the input pool."""

    def time_calls(self, count: int, lead: int) -> TimedBlock | Failed:
        """Times calls one by one, after `lead` cache flushes."""

    def capture_graph(self) -> Failed | None:
        """Captures one call for each input set as a graph."""

    def replay_graph(self, lead: int) -> TimedBlock | Failed:
        """Times one replay of the graph, after `lead` more cache flushes."""


@dataclass
class PairedResult:
    """The result of a comparison. Seconds are of one call unless a field says otherwise."""

    baseline_seconds: float
    candidate_seconds: float
    effects: list[float]
    """For each pair of blocks log(baseline / candidate), by the stamps of both sides."""
    graph: bool
    """Whether calls were timed by graph replay."""
    clock_effects: list[float] = field(default_factory=list)
    """The same, with the judge's clock in place of the candidate's stamps."""
    unaccounted_by_pair: list[tuple[float, float]] = field(default_factory=list)
    """For each pair the wall-clock seconds that stamps do not account for: baseline, candidate."""
    claimed_seconds: float = 0.0
    """The candidate's stamps of one block, added up: the median over blocks."""
    clock_seconds: float = 0.0
    """The candidate's part of one block by the judge's clock: the median over blocks."""

    @property
    def charge(self) -> float:
        """By how much the mean effect exceeds what the judge's clock allows; 0 if stamps are true.

        Both means are trimmed in the same way, so false stamps in some of the blocks gain nothing.
        """
        if not self.clock_effects:
            return 0.0
        free = math.log1p(free_seconds(self.clock_seconds) / self.clock_seconds)
        most = interval(self.clock_effects).mean + free
        return max(0.0, interval(self.effects).mean - most)

    @property
    def interval(self) -> LogRatioInterval:
        """The interval of all pairs so far, limited to what the judge's clock allows."""
        by_stamps = interval(self.effects)
        return replace(by_stamps, mean=by_stamps.mean - self.charge)

    @property
    def unaccounted_seconds(self) -> float:
        """Seconds of a block that stamps do not account for, beyond those of the baseline."""
        import numpy as np

        pairs = np.array(self.unaccounted_by_pair)
        baseline, candidate = np.quantile(pairs, CLOCK.quantile, axis=0)
        return float(candidate - baseline)

    @property
    def unaccounted_share(self) -> float:
        """The unaccounted time as a share of the claimed time."""
        return self.unaccounted_seconds / self.claimed_seconds

    @property
    def clock_agrees(self) -> bool:
        """Whether the candidate's stamps can be true by the judge's clock (rule 13)."""
        limit = CLOCK.block_seconds + CLOCK.block_share * self.claimed_seconds
        return self.unaccounted_seconds <= limit

    @property
    def worth_a_retry(self) -> bool:
        """Whether another comparison may help: a slow host can charge an honest candidate."""
        return not self.clock_agrees or self.charge > CLOCK.charge_limit


@dataclass(frozen=True)
class BlockSummary:
    """The result of one block. All values are seconds."""

    call: float
    """The median of the stamps, for one call."""
    claimed: float
    """The median stamp times the number of stamps. The sum would not do: stamps with a small median
    can have any sum."""
    unaccounted: float
    """Wall-clock time beyond `claimed`."""

    def clock_call_seconds(self, baseline: BlockSummary) -> float:
        """Returns the seconds of one call by the judge's clock, at least half of what is claimed.

        Args:
            baseline: The baseline's block beside this one. Both sides have the same flushes and
                requests, so the baseline's unaccounted time is overhead.
        """
        seconds = self.claimed + self.unaccounted - baseline.unaccounted
        return self.call * max(0.5, seconds / self.claimed)


def free_seconds(block: float) -> float:
    """Returns the seconds by which stamps of a block may be better than the judge's clock says.

    The host overhead of an honest candidate's block differs from the baseline's by about 0.1 ms.

    Args:
        block: Seconds of the calls of a block by the judge's clock.
    """
    return min(CLOCK.free_seconds + CLOCK.free_share * block, CLOCK.median_share * block)


@dataclass(frozen=True)
class PairedSetup:
    """The parts of a comparison other than its two sides."""

    sets: int
    """The number of input sets that both sides hold."""
    prepare: Callable[[bool, int], None]
    """Called before each block with whether the candidate comes next, and the number of calls."""
    verify: Callable[[int], Ended | None]
    """Called after some of the candidate's blocks with the number of calls. Returns what is wrong
    with the outputs."""
    flush_seconds: float
    """How long one cache flush takes."""
    clock: Callable[[], float]
    """Monotonic seconds."""
    rng: random.Random
    """Decides which blocks are verified."""
    longer: int = 1
    """Blocks are this many times as long as usual."""


class PairedBenchmark:
    """Runs the blocks of one workload.

    Args:
        baseline: One side. Its failure is a failure of the machine.
        candidate: The other side. Its failure ends the comparison.
        setup: The other parts of the comparison.
    """

    def __init__(self, baseline: Side, candidate: Side, setup: PairedSetup) -> None:
        self._baseline, self._candidate = baseline, candidate
        self._setup = setup
        self._calls = min(TIMING.pilot_calls, setup.sets)
        self._graph = False
        """Whether a block is one replay of a graph, instead of single calls."""
        self._single_baseline = False
        self._single_candidate = False
        self._lead = TIMING.pilot_lead
        self._host_seconds = 0.0
        self._shortest = 0.0
        """The least stamp of the pilot: seconds of a call in which the GPU did not wait."""
        self._calls_ahead = TIMING.max_calls
        self._verified = False

    def run(self) -> PairedResult | Ended:
        """Returns the result, or the failure that ended the comparison.

        Raises:
            InfraError: The baseline failed.
        """
        pilot = self._pilot()
        if isinstance(pilot, tuple) and self._needed_lead() > self._lead:
            self._lead = self._needed_lead()  # the host was behind: stamps may hold its time
            pilot = self._pilot()
        if not isinstance(pilot, tuple):
            return pilot
        self._choose_method(*pilot)
        if self._graph:
            first = self._pilot()  # the driver uploads a graph when it is first launched
            if not isinstance(first, tuple):
                return first
        result = PairedResult(*pilot, effects=[], graph=self._graph)
        end = self._setup.clock() + TIMING.max_seconds
        pairs: list[tuple[BlockSummary, BlockSummary]] = []
        while not self._done(result, end):
            blocks = self._round(len(pairs))
            if not isinstance(blocks, tuple):
                return blocks
            a1, b1, b2, a2 = blocks
            for baseline, candidate in ((a1, b1), (a2, b2)):
                pairs.append((baseline, candidate))
                _add_pair(result, baseline, candidate)
            result.claimed_seconds = statistics.median(b.claimed for _, b in pairs)
            result.clock_seconds = statistics.median(
                b.clock_call_seconds(a) / b.call * b.claimed for a, b in pairs
            )
        result.baseline_seconds = statistics.median(a.call for a, _ in pairs)
        result.candidate_seconds = statistics.median(b.call for _, b in pairs)
        result.candidate_seconds *= math.exp(result.charge)
        return result

    def _round(
        self, blocks: int
    ) -> tuple[BlockSummary, BlockSummary, BlockSummary, BlockSummary] | Ended:
        """Runs four blocks in the order ABBA; returns them, or the failure of one.

        Args:
            blocks: The number of blocks that the candidate has had, without the pilot.
        """
        self._lead = self._needed_lead()
        a1 = self._baseline_block()
        b1 = self._candidate_block(verified=self._draw(blocks))
        if not isinstance(b1, TimedBlock):
            return b1
        b2 = self._candidate_block(verified=self._draw(blocks + 1))
        if not isinstance(b2, TimedBlock):
            return b2
        a2 = self._baseline_block()
        # The host time of the slower side counts. One slow block must not make all blocks of the
        # next round longer, so the better of a side's two blocks counts.
        self._host_seconds = max(
            min(a1.host_seconds, a2.host_seconds), min(b1.host_seconds, b2.host_seconds)
        )
        summary = self._summary
        return summary(a1), summary(b1), summary(b2), summary(a2)

    def _summary(self, block: TimedBlock) -> BlockSummary:
        median = statistics.median(block.call_seconds)
        claimed = median * len(block.call_seconds)
        calls = self._setup.sets if self._graph else 1
        return BlockSummary(median / calls, claimed, block.wall_seconds - claimed)

    def _done(self, result: PairedResult, end: float) -> bool:
        pairs = len(result.effects)
        if pairs < TIMING.min_pairs:
            return False
        return pairs >= TIMING.max_pairs or self._setup.clock() > end or result.interval.settled

    def _pilot(self) -> tuple[float, float] | Ended:
        """Returns the least seconds of a call of each side, in one block that warms it up."""
        baseline = self._baseline_block()
        candidate = self._candidate_block(verified=False)
        if not isinstance(candidate, TimedBlock):
            return candidate
        self._host_seconds = max(baseline.host_seconds, candidate.host_seconds)
        self._shortest = min(*baseline.call_seconds, *candidate.call_seconds)
        self._calls_ahead = self._most_calls_ahead(baseline.host_seconds)
        return min(baseline.call_seconds), min(candidate.call_seconds)

    def _choose_method(self, baseline: float, candidate: float) -> None:
        """Chooses graph replay or single calls, and the length of blocks of single calls.

        Args:
            baseline: Seconds of a call of the baseline.
            candidate: Seconds of a call of the candidate.
        """
        setup, middle = self._setup, math.sqrt(baseline * candidate)
        seconds = max(TIMING.block_seconds, TIMING.candidate_seconds * middle / candidate)
        seconds = min(seconds, TIMING.max_block_factor * TIMING.block_seconds)
        calls = int(setup.longer * seconds / middle)
        short = middle < TIMING.graph_below_seconds
        if short and self._capture():
            self._graph = True
            return
        most = min(setup.longer * TIMING.max_calls, setup.sets, self._calls_ahead)
        self._calls = min(max(TIMING.min_calls, calls), max(TIMING.min_calls, most))
        self._single_baseline = baseline > TIMING.long_call_seconds
        self._single_candidate = candidate > TIMING.long_call_seconds

    def _capture(self) -> bool:
        """Whether the calls of both sides could be captured as graphs."""
        return self._baseline.capture_graph() is None and self._candidate.capture_graph() is None

    def _needed_lead(self) -> int:
        """Returns how many flushes keep the GPU busy until the host has queued the whole block.

        If the GPU takes a stamp before the call behind it is queued, host time counts as time of
        the kernel. The first call has its own flush. Half of the host's time is added as reserve.
        The number depends on the last round and is the same for both sides, so that it does not
        show in the wall-clock time of one side only.
        """
        flush = self._setup.flush_seconds
        count = 1 if self._graph else self._calls
        host = TIMING.lead_host_factor * self._host_seconds
        seconds = host - flush + (count - 1) * self._behind(self._host_seconds)
        return min(max(1, math.ceil(seconds / flush)), self._most_lead)

    def _behind(self, host: float) -> float:
        """Seconds by which the GPU catches up with the host in each call, with the reserve."""
        flush = self._setup.flush_seconds
        return max(0.0, TIMING.lead_host_factor * host - self._shortest - flush)

    @property
    def _most_lead(self) -> int:
        return self._setup.longer * TIMING.max_lead

    def _most_calls_ahead(self, host: float) -> int:
        """Returns how many calls the host can queue before the longest lead is over.

        Args:
            host: Seconds for queueing one call of the baseline. That of the candidate does not
                count, as it could make its blocks short: in short blocks the clock sees less.
        """
        flush, behind = self._setup.flush_seconds, self._behind(host)
        if not behind:
            return TIMING.max_calls * self._setup.longer
        first = TIMING.lead_host_factor * host - flush
        return 1 + max(0, int((self._most_lead * flush - first) / behind))

    def _draw(self, number: int) -> bool:
        """Decides whether the candidate's next block is verified; at least one of the first is."""
        last = number == TIMING.min_pairs - 1 and not self._verified
        chosen = self._setup.rng.random() < TIMING.verified_share or last
        self._verified = self._verified or chosen
        return chosen

    def _baseline_block(self) -> TimedBlock:
        block = self._block(self._baseline, False, self._single_baseline)
        if isinstance(block, Failed):
            raise InfraError(f"the baseline failed while it was timed: {block.message}")
        return block

    def _candidate_block(self, verified: bool) -> TimedBlock | Ended:
        """Runs a block of the candidate; returns it, or the failure of it or of its outputs."""
        block = self._block(self._candidate, True, self._single_candidate)
        if isinstance(block, Failed) or not verified:
            return block
        single = 1 if self._single_candidate else self._calls
        return self._setup.verify(self._setup.sets if self._graph else single) or block

    def _block(self, side: Side, fresh: bool, single: bool) -> TimedBlock | Failed:
        if self._graph:
            self._setup.prepare(fresh, self._setup.sets)
            return side.replay_graph(self._lead)
        calls = 1 if single else self._calls
        # Both sides flush equally often, so that their wall-clock times can be compared.
        lead = self._lead + self._calls - calls
        self._setup.prepare(fresh, calls)
        return side.time_calls(calls, lead)


def _add_pair(result: PairedResult, baseline: BlockSummary, candidate: BlockSummary) -> None:
    result.effects.append(math.log(baseline.call / candidate.call))
    clock_seconds = candidate.clock_call_seconds(baseline)
    result.clock_effects.append(math.log(baseline.call / clock_seconds))
    result.unaccounted_by_pair.append((baseline.unaccounted, candidate.unaccounted))
