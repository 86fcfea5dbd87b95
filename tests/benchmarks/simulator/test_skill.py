"""Figures of agreement between modelled and measured times."""

import math
from dataclasses import replace

import pytest

from benchmarks.simulator.skill import Compared, pair_order, skill


def rows(modelled, measured=(10.0, 20.0, 40.0), floor=6.0):
    return [
        Compared(f"r{i}", "softmax", "softmax|64", a, b, floor, floor)
        for i, (a, b) in enumerate(zip(measured, modelled, strict=True))
    ]


def test_perfect_times_have_no_error():
    figures = skill(rows((10.0, 20.0, 40.0)))
    assert figures.rho.value == figures.tau.value == figures.rho_groups.value == 1
    assert figures.regret.value == 0
    assert figures.ratio.value == pytest.approx(1)
    assert (figures.pairs, figures.groups) == (3, 1)


def test_reversed_times_rank_backwards():
    figures = skill(rows((40.0, 20.0, 10.0)))
    assert figures.rho.value == figures.tau.value == -1
    assert figures.regret.value == 3  # the pick takes 40 instead of 10


def test_equal_modelled_times_rank_nothing():
    figures = skill(rows((20.0, 20.0, 20.0)))
    assert figures.rho.value == figures.tau.value == 0


def test_ratio_counts_the_time_above_the_floor():
    figures = skill(rows((14.0, 34.0, 74.0)))
    assert figures.ratio.value == pytest.approx(2)
    assert figures.spread == pytest.approx(1)


def test_times_at_the_floor_say_nothing():
    figures = skill(rows((7.0, 9.0, 12.0), measured=(6.0, 6.1, 6.2)))
    assert figures.ratio is None
    assert figures.groups == figures.pairs == 0
    assert figures.rho is None


def test_pairs_of_variants_have_an_order_and_an_error():
    order = pair_order(rows((10.0, 40.0, 20.0)))
    assert (order["pairs"], order["in_order"]) == (3, 2)
    assert order["median_ratio_error"] == pytest.approx(1)


def test_intervals_contain_the_figure_and_repeat():
    many = [r for i in range(8) for r in rows((10.0 + i, 25.0, 30.0))]
    first, second = skill(many), skill(many)
    assert first == second
    assert first.ratio.low <= first.ratio.value <= first.ratio.high
    assert math.isfinite(first.rho.low)


def test_a_time_that_varies_much_is_the_hosts():
    steady = rows((14.0, 34.0, 74.0))
    shaky = replace(rows((7.0,), measured=(30.0,))[0], varies=1.5)
    assert shaky.is_of_the_host
    assert shaky.ratio is None
    assert not steady[0].is_of_the_host
    figures = skill([*steady, shaky])
    assert figures.records == 4
    assert figures.ratio.value == pytest.approx(2)
