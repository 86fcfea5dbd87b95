"""Pairs of calls: order, stopping, the baseline's own launcher, verified calls, failures."""

import itertools
import math
import random
import statistics

import pytest

from kernel_gym.devices.base import Failed, FailureKind, InfraError, TimedCall
from kernel_gym.judge.attempt import Verdict
from kernel_gym.judge.protocol import TIMING
from kernel_gym.judge.timing.log_ratios import pairs_needed
from kernel_gym.judge.timing.paired import PairedBenchmark, PairedResult, PairedSetup
from kernel_gym.records import Outcome


class Side:
    """A session whose calls take the seconds of a function."""

    def __init__(self, seconds, graphs=True):
        self.seconds, self.graphs = seconds, graphs
        self.calls, self.orders = [], []

    def time_calls(self, order, call, graph):
        self.calls.append(call)
        self.orders.append(order)
        if graph and not self.graphs:
            return None
        times = [side.seconds() for side in order]
        return next((one for one in times if isinstance(one, Failed)), times)


def steady(seconds, spread=0.0, seed=1):
    draw = random.Random(seed)
    return Side(lambda: seconds * math.exp(spread * draw.gauss(0, 1)))


def compared(alone, beside, candidate, verify=lambda inputs, call: None, clock=lambda: 0.0):
    placed = []

    def place(inputs, kept):
        placed.append(kept)
        return TimedCall(len(placed), (0,) if kept else ())

    setup = PairedSetup(lambda: {}, place, verify, clock, random.Random(5))
    return measured(PairedBenchmark(alone, beside, candidate, setup)), placed


def measured(benchmark):
    """Returns the result of both stages, or what ended them."""
    ended = benchmark.measure(TIMING.min_pairs)
    if ended is None:
        ended = benchmark.measure(pairs_needed([benchmark.result.effects])[0])
    return benchmark.result if ended is None else ended


def test_both_sides_are_timed_in_the_launcher_of_the_candidate():
    alone, beside, candidate = steady(2e-5), steady(2e-5), steady(1e-5)
    result, _ = compared(alone, beside, candidate)
    assert result.interval.mean == pytest.approx(math.log(2))
    assert len(result.effects) == TIMING.min_pairs
    assert not beside.calls
    firsts = {order[0] for order in candidate.orders}
    assert firsts == {beside, candidate}
    assert len(result.checks) == -(-TIMING.min_pairs // TIMING.alone_every)


def test_a_difference_of_launchers_does_not_matter():
    alone = steady(5.1e-6)
    result, _ = compared(alone, steady(5e-6), steady(5e-6))
    assert result.interval.mean == 0
    assert result.slowed == 0


def test_a_baseline_that_is_slower_beside_the_candidate_is_found():
    result, _ = compared(steady(2e-5), steady(3e-5), steady(1e-5))
    assert result.slowed == pytest.approx(0.5)


def test_a_time_that_depends_on_the_inputs_is_no_slower_baseline():
    """The few inputs that the baseline has alone are quicker ones than the median of all pairs."""
    drawn = itertools.count(-1)  # the first draw warms up
    seconds = [0.0]

    def draw():
        seconds[0] = 1e-5 * (1 + 0.5 * (next(drawn) % TIMING.alone_every))
        return {}

    sides = [Side(lambda: seconds[0]) for _ in range(3)]
    setup = PairedSetup(
        draw, lambda i, kept: TimedCall(1, ()), lambda i, c: None, lambda: 0.0, random.Random(5)
    )
    result = measured(PairedBenchmark(*sides, setup))
    alone = statistics.median(seconds for _, seconds in result.checks)
    assert result.baseline_seconds == pytest.approx(1.5 * alone)
    assert result.slowed == 0


def test_two_launchers_widen_the_interval():
    result, _ = compared(steady(1e-5), None, steady(1e-5))
    assert result.interval.half == pytest.approx(TIMING.launcher_seconds / 1e-5)
    assert result.checks == []


def test_noise_needs_more_pairs_and_their_number_is_even():
    result, _ = compared(steady(1e-5, 0.03), steady(1e-5, 0.03, 2), steady(1e-5, 0.03, 3))
    assert TIMING.min_pairs < len(result.effects) <= TIMING.max_pairs
    assert len(result.effects) % 2 == 0


def test_no_pair_starts_after_the_time():
    times = iter(range(1000))
    clock = lambda: 1000.0 * next(times)  # noqa: E731
    sides = steady(1e-5, 0.3), steady(1e-5, 0.3, 2), steady(1e-5, 0.3, 3)
    result, _ = compared(*sides, clock=clock)
    assert len(result.effects) == TIMING.min_pairs


def test_at_least_one_call_is_verified_and_a_wrong_one_ends_it():
    seen = []
    _, placed = compared(*map(steady, (1e-5,) * 3), verify=lambda i, call: seen.append(call))
    assert seen
    assert any(placed)
    assert all(call.results for call in seen)
    wrong = Verdict(Outcome.WRONG_VALUES, "wrong")
    result, _ = compared(*map(steady, (1e-5,) * 3), verify=lambda i, call: wrong)
    assert result is wrong


def test_who_fails_decides_what_a_failure_is():
    failed = Failed(FailureKind.RUNTIME, "fault")
    result, _ = compared(steady(1e-5), steady(1e-5), Side(lambda: failed))
    assert result is failed
    result, _ = compared(steady(1e-5), Side(lambda: failed), steady(1e-5))
    assert result is failed  # where kernels of the candidate have run, it is to blame
    with pytest.raises(InfraError, match="the baseline failed"):
        compared(Side(lambda: failed), steady(1e-5), steady(1e-5))


def test_neither_side_has_graphs_if_one_cannot_be_captured():
    reference = Side(lambda: 1e-5, graphs=False)
    result, _ = compared(reference, None, steady(1e-5))
    assert isinstance(result, PairedResult)
    assert not result.graph
