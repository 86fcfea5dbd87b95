"""Paired timing on a machine that is simulated: a clock that drifts, hiccups, and lies."""

import math
import random
import statistics
from dataclasses import replace

import pytest

from kernel_gym.devices.base import Failed, FailureKind, TimedBlock
from kernel_gym.judge.protocol import CLOCK, TIMING
from kernel_gym.judge.timing.paired import (
    BlockSummary,
    PairedBenchmark,
    PairedResult,
    PairedSetup,
    free_seconds,
)

FLUSH = 100e-6


def block_of(stamps, wall, host=60e-6):
    return TimedBlock(stamps, wall, host)


class Machine:
    """A GPU whose clock wanders by some per cent over a second, with rare hiccups."""

    def __init__(self, rng, drift=0.0, noise=0.003, hiccups=0.0):
        self.now, self.rng = 0.0, rng
        self.drift, self.noise, self.hiccups = drift, noise, hiccups

    def call(self, seconds):
        speed = 1 + self.drift * math.sin(2 * math.pi * self.now / 0.7)
        taken = seconds * speed * self.rng.lognormvariate(0, self.noise)
        self.now += taken + FLUSH
        return taken

    def stall(self):
        return 3.0 if self.rng.random() < self.hiccups else 1.0


class Side:
    """A kernel of known speed; `says` is the share of its true time that it admits."""

    ring = 24

    def __init__(self, machine, seconds, says=1.0, captures=True):
        self.machine, self.seconds, self.says, self.captures = machine, seconds, says, captures
        self.blocks, self.replays = [], 0

    def time_calls(self, count, lead=0):
        start, stall = self.machine.now, self.machine.stall()
        self.machine.now += lead * FLUSH
        stamps = tuple(self.machine.call(self.seconds * stall) for _ in range(count))
        self.blocks.append(count)
        return block_of(tuple(s * self.says for s in stamps), self.machine.now - start + 50e-6)

    def capture_graph(self):
        return None if self.captures else Failed(FailureKind.RUNTIME, "cannot be captured")

    def replay_graph(self, lead):
        start = self.machine.now
        self.machine.now += lead * FLUSH
        self.replays += 1
        seconds = self.machine.call(self.seconds * self.ring)
        return block_of((seconds * self.says,), self.machine.now - start)


class Busy(Side):
    """A side whose host code takes long for a call."""

    def __init__(self, *args, host):
        super().__init__(*args)
        self.host, self.leads = host, []

    def time_calls(self, count, lead=0):
        self.leads.append(lead)
        return replace(super().time_calls(count, lead), host_seconds=self.host)


def compare(
    baseline,
    candidate,
    machine,
    seed=0,
    verify=lambda count: None,
    graphs=True,
    longer=1,
    prepare=lambda fresh, calls: None,
):
    for side in (baseline, candidate):
        side.ring = Side.ring * longer
        side.captures = side.captures and graphs
    setup = PairedSetup(
        sets=candidate.ring,
        prepare=prepare,
        verify=verify,
        flush_seconds=FLUSH,
        clock=lambda: machine.now,
        rng=random.Random(seed),
        longer=longer,
    )
    return PairedBenchmark(baseline, candidate, setup).run()


def repeat(ratio, times, **quirks):
    result = []
    for seed in range(times):
        machine = Machine(random.Random(seed), **quirks)
        slower = Side(machine, 100e-6 * ratio)
        result.append(compare(Side(machine, 100e-6), slower, machine, seed))
    return result


@pytest.mark.parametrize("quirks", [{}, {"drift": 0.1}, {"drift": 0.05, "hiccups": 0.03}], ids=str)
def test_the_interval_covers_the_true_ratio_as_often_as_it_says(quirks):
    intervals = [pairs.interval for pairs in repeat(1.02, 200, **quirks)]
    covered = sum(abs(i.mean + math.log(1.02)) <= i.half for i in intervals)
    assert covered >= 0.9 * len(intervals)


def test_sequential_medians_would_be_fooled_by_the_same_drift():
    wrong = 0
    for seed in range(100):
        machine = Machine(random.Random(seed), drift=0.1)
        first, second = (Side(machine, 100e-6) for _ in range(2))
        ratios = [statistics.median(s.time_calls(200).call_seconds) for s in (first, second)]
        wrong += abs(math.log(ratios[0] / ratios[1])) > 0.01
    assert wrong > 50


def test_a_slowdown_of_two_per_cent_is_told_from_none():
    slow, same = repeat(1.02, 100, drift=0.05), repeat(1.0, 100, drift=0.05)
    assert sum(p.interval.mean + p.interval.half < 0 for p in slow) >= 95
    assert sum(p.interval.mean + p.interval.half < 0 for p in same) <= 6


def test_a_quiet_machine_needs_the_fewest_pairs_and_a_wild_one_stops_in_the_end():
    assert len(repeat(1.0, 1)[0].effects) == TIMING.min_pairs
    assert len(repeat(1.0, 1, noise=0.5)[0].effects) in range(
        TIMING.max_pairs // 2, TIMING.max_pairs + 3
    )


def test_stamps_that_hide_time_disagree_with_the_judges_clock():
    machine = Machine(random.Random(0))
    honest = compare(Side(machine, 300e-6), Side(machine, 300e-6), machine)
    shaved = compare(Side(machine, 300e-6), Side(machine, 300e-6, says=0.7), machine)
    assert abs(honest.unaccounted_seconds) < CLOCK.median_share * honest.claimed_seconds
    assert shaved.unaccounted_seconds > CLOCK.median_share * shaved.claimed_seconds
    assert honest.clock_agrees
    assert not compare(Side(machine, 2e-3), Side(machine, 2e-3, says=0.4), machine).clock_agrees


class Slow(Side):
    """A side whose host takes so many seconds more for a block, whatever its length."""

    def time_calls(self, count, lead=0):
        result = super().time_calls(count, lead)
        return replace(result, wall_seconds=result.wall_seconds + 150e-6)

    def replay_graph(self, lead):
        result = super().replay_graph(lead)
        return replace(result, wall_seconds=result.wall_seconds + 150e-6)


@pytest.mark.parametrize("seconds", [3e-6, 20e-6])
@pytest.mark.parametrize("graphs", [True, False])
def test_longer_blocks_tell_a_slow_host_from_hidden_time(seconds, graphs):
    machine = Machine(random.Random(0))

    def share(candidate, longer):
        result = compare(Side(machine, seconds), candidate, machine, graphs=graphs, longer=longer)
        return result.unaccounted_share

    slow = [share(Slow(machine, seconds), longer) for longer in (1, CLOCK.retry_block_factor)]
    assert 0 < slow[1] < 1.2 * slow[0] / CLOCK.retry_block_factor
    assert share(Side(machine, seconds, says=0.7), CLOCK.retry_block_factor) > CLOCK.median_share


def test_both_sides_wait_for_the_slower_host_to_get_ahead():
    """Or the time from a stamp to the late launch behind it would count as the kernel's."""
    machine = Machine(random.Random(0))
    quick, slow = (Busy(machine, 150e-6, host=host) for host in (30e-6, 350e-6))
    compare(quick, slow, machine)
    assert quick.leads == slow.leads
    count, behind = slow.blocks[-1], 350e-6 - 150e-6 - FLUSH
    assert slow.leads[-1] * FLUSH >= count * behind
    calm = Busy(machine, 150e-6, host=30e-6)
    compare(Busy(machine, 150e-6, host=30e-6), calm, machine)
    assert calm.leads[-1] == 1


class Queued(Side):
    """A side whose GPU waits for calls that its host has not queued: the stamps say so."""

    def __init__(self, machine, seconds, host, jitter):
        super().__init__(machine, seconds)
        self.host, self.jitter = host, jitter

    def time_calls(self, count, lead=0):
        begin, queued, gpu = self.machine.now, 0.0, lead * FLUSH
        pace = self.host * self.machine.rng.uniform(1, 1 + self.jitter)  # one block, one pace
        stamps = []
        for _ in range(count):
            start = max(gpu, queued) + FLUSH
            queued += pace
            gpu = max(start, queued) + self.seconds
            stamps.append(gpu - start)
        self.machine.now = begin + gpu + 50e-6
        return TimedBlock(tuple(stamps), gpu + 50e-6, pace)


@pytest.mark.parametrize("host", [150e-6, 400e-6, 800e-6])
def test_host_time_of_calls_that_no_graph_holds_is_not_time_of_the_kernel(host):
    for seed in range(20):
        machine = Machine(random.Random(seed))
        sides = (Queued(machine, 5e-6, host, 0.4) for _ in range(2))
        result = compare(*sides, machine, seed, graphs=False)
        assert result.candidate_seconds == pytest.approx(5e-6, rel=0.05)
        assert abs(result.interval.mean) < 0.02


@pytest.mark.parametrize("host", [30e-6, 400e-6, 2e-3])
def test_short_calls_of_a_slow_host_are_replayed(host):
    machine = Machine(random.Random(0))
    assert compare(*(Queued(machine, 5e-6, host, 0.4) for _ in range(2)), machine).graph


def test_a_moment_in_which_the_host_is_slow_makes_no_later_block_wait_longer():
    """One slow block of a round does not count, but a side that is always slow does."""
    machine = Machine(random.Random(0), noise=0.1)  # of many rounds

    class Hiccups(Busy):
        def time_calls(self, count, lead=0):
            result = super().time_calls(count, lead)
            return replace(result, host_seconds=3e-3) if len(self.leads) % 2 else result

    side = Hiccups(machine, 150e-6, host=150e-6)
    compare(Busy(machine, 150e-6, host=30e-6), side, machine)
    assert len(side.leads) > 3 * TIMING.min_pairs
    assert set(side.leads[3:]) == {math.ceil(1.5 * 150e-6 / FLUSH - 1)}


def test_a_long_call_is_a_block_by_itself_and_no_time_is_hidden_behind_it():
    machine = Machine(random.Random(0))
    loop, quick = (Busy(machine, seconds, host=60e-6) for seconds in (0.5, 150e-6))
    result = compare(loop, quick, machine)
    assert (set(loop.blocks[1:]), set(quick.blocks[1:])) == ({1}, {2})
    assert result.interval.mean == pytest.approx(math.log(0.5 / 150e-6), rel=0.01)
    assert abs(result.unaccounted_share) < 0.1
    shaved = compare(loop, Busy(machine, 150e-6, 0.7, host=60e-6), machine)
    assert shaved.unaccounted_share > CLOCK.median_share


def test_a_lead_that_a_candidate_asks_for_has_a_bound():
    machine = Machine(random.Random(0))
    greedy = Busy(machine, 150e-6, host=20.0)
    compare(Side(machine, 150e-6), greedy, machine)
    assert max(greedy.leads) == TIMING.max_lead


def test_a_slow_host_of_the_candidate_makes_no_block_shorter():
    def calls(host):
        machine = Machine(random.Random(0), noise=0.0)
        candidate = Busy(machine, 150e-6, host=host)
        compare(Busy(machine, 150e-6, host=200e-6), candidate, machine)
        return candidate.blocks[-1]

    assert calls(20.0) == calls(60e-6) > TIMING.min_calls


def test_all_time_that_stamps_do_not_account_for_is_hidden_time():
    pairs = PairedResult(
        1e-4, 1e-4, [0.0] * 6, False, unaccounted_by_pair=[(0.0, 50e-6)] * 6, claimed_seconds=2e-4
    )
    assert pairs.unaccounted_share == pytest.approx(0.25)


class Cache(Side):
    """A side that keeps its answers, and works only for data that it has not seen before."""

    def __init__(self, machine, seconds):
        super().__init__(machine, seconds)
        self.fresh = True

    def replay_graph(self, lead):
        seconds, self.fresh = self.seconds if self.fresh else self.seconds / 50, False
        return replace(super().replay_graph(lead), call_seconds=(seconds * self.ring,))


def test_data_are_new_in_each_replay():
    machine = Machine(random.Random(0))
    cache, seconds = Cache(machine, 4e-6), 4e-6

    def prepare(fresh, calls):
        cache.fresh = cache.fresh or fresh

    result = compare(Side(machine, seconds), cache, machine, prepare=prepare)
    assert result.graph
    assert cache.replays == len(result.effects) + 1
    assert result.interval.mean == pytest.approx(0, abs=0.02)


def test_short_calls_are_replayed_and_long_ones_stamped():
    machine = Machine(random.Random(0))
    short = compare(Side(machine, 4e-6), Side(machine, 5e-6), machine)
    assert short.graph
    assert short.candidate_seconds == pytest.approx(5e-6, rel=0.02)
    assert not compare(Side(machine, 150e-6), Side(machine, 150e-6), machine).graph


def test_what_cannot_be_captured_is_stamped_on_both_sides():
    machine = Machine(random.Random(0))
    baseline = Side(machine, 4e-6)
    result = compare(baseline, Side(machine, 4e-6, captures=False), machine)
    assert isinstance(result, PairedResult)
    assert not result.graph
    assert max(baseline.blocks) == 24


def test_wrong_values_in_a_timed_block_end_the_comparison():
    machine = Machine(random.Random(0))
    checked = []

    def verify(count):
        checked.append(count)
        return "wrong values" if len(checked) == 2 else None

    result = compare(Side(machine, 100e-6), Side(machine, 100e-6), machine, 2, verify=verify)
    assert result == "wrong values"


class Liar(Side):
    """A side whose stamps are what `lie` makes of the true ones; the judge's clock is true."""

    def __init__(self, machine, seconds, lie):
        super().__init__(machine, seconds)
        self.lie, self.number = lie, 0

    def time_calls(self, count, lead=0):
        return self._false(super().time_calls(count, lead))

    def replay_graph(self, lead):
        return self._false(super().replay_graph(lead))

    def _false(self, block):
        self.number += 1
        return replace(block, call_seconds=tuple(self.lie(list(block.call_seconds), self.number)))


def into_the_last(stamps, number):
    """Every stamp says an eighth but the last, which says the rest."""
    small = [s / 8 for s in stamps[:-1]]
    return [*small, sum(stamps) - sum(small)]


def into_one_block_of_four(stamps, number):
    """Three blocks of four say an eighth; the time of the fourth is true."""
    return stamps if number % 4 == 0 else [s / 8 for s in stamps]


def all_of_it(stamps, number):
    return [s / 8 for s in stamps]


def a_quarter(stamps, number):
    return [s * 0.75 for s in stamps]


@pytest.mark.parametrize("lie", [into_the_last, into_one_block_of_four, all_of_it, a_quarter])
@pytest.mark.parametrize("seconds", [3e-6, 20e-6, 60e-6, 200e-6, 1e-3, 5e-3, 50e-3])
@pytest.mark.parametrize("faster", [1.0, 3.0])
def test_no_stamps_are_paid_a_quarter_more_than_the_judges_clock_allows(lie, seconds, faster):
    machine = Machine(random.Random(0))
    liar = Liar(machine, seconds / faster, lie)
    pairs = compare(Side(machine, seconds), liar, machine)
    assert math.exp(pairs.interval.mean) < 1.27 * faster


@pytest.mark.parametrize("seconds", [3e-6, 20e-6, 200e-6, 1e-3])
@pytest.mark.parametrize("faster", [1.0, 3.0, 20.0])
def test_an_honest_side_is_charged_nothing(seconds, faster):
    machine = Machine(random.Random(1))
    pairs = compare(Side(machine, seconds), Side(machine, seconds / faster), machine)
    assert math.exp(pairs.interval.mean) == pytest.approx(faster, rel=0.02)
    assert pairs.charge == 0
    assert not pairs.worth_a_retry


def test_what_is_free_is_never_more_than_a_quarter_and_little_of_a_long_block():
    assert free_seconds(40e-6) == pytest.approx(10e-6)
    assert free_seconds(20e-3) == pytest.approx(1.25e-3)


def test_the_judges_clock_needs_no_stamps_of_the_candidate():
    ours = BlockSummary(1e-3, 2e-3, unaccounted=500e-6)
    true = BlockSummary(1e-3, 2e-3, unaccounted=500e-6)
    false = BlockSummary(0.25e-3, 0.5e-3, unaccounted=2e-3)
    assert true.clock_call_seconds(ours) == pytest.approx(1e-3)
    assert false.clock_call_seconds(ours) == pytest.approx(1e-3)
    assert BlockSummary(1e-3, 2e-3, unaccounted=-9.0).clock_call_seconds(ours) == 0.5e-3


def test_a_comparison_that_is_charged_is_late():
    pairs = PairedResult(1e-4, 1e-4, [0.5] * 6, False, [0.5] * 6, [(0.0, 0.0)] * 6, 2e-3, 2e-3)
    assert pairs.charge == 0
    assert not pairs.worth_a_retry
    free = math.log1p(free_seconds(2e-3) / 2e-3)
    charged = replace(pairs, clock_effects=[0.5 - free - 2 * CLOCK.charge_limit] * 6)
    assert charged.charge == pytest.approx(2 * CLOCK.charge_limit)
    assert charged.interval.mean == pytest.approx(0.5 - 2 * CLOCK.charge_limit)
    assert charged.worth_a_retry


@pytest.mark.parametrize("seconds", [20e-6, 300e-6, 2e-3])
def test_jitter_of_an_honest_host_is_not_charged(seconds):
    class Jittery(Side):
        def time_calls(self, count, lead=0):
            return self._late(super().time_calls(count, lead))

        def replay_graph(self, lead):
            return self._late(super().replay_graph(lead))

        def _late(self, block):
            slow = 4e-3 if self.machine.rng.random() < 0.03 else 0.0
            return replace(
                block, wall_seconds=block.wall_seconds + self.machine.rng.gauss(0, 100e-6) + slow
            )

    for seed in range(20):
        machine = Machine(random.Random(seed))
        pairs = compare(Side(machine, seconds), Jittery(machine, seconds), machine, seed)
        assert pairs.charge < 0.05
