"""Intervals for families that nobody compared."""

import math
import random

import pytest

from kernel_gym.sim.timing.intervals import interval, left_out_coverage, ratio_misses


def test_few_families_promise_less():
    assert interval({}).factor == math.inf
    few = interval({"a": [0.1], "b": [0.3, -0.5], "empty": []})
    assert (few.families, few.level) == (2, pytest.approx(2 / 3))
    assert few.factor == pytest.approx(math.exp(0.5))


def test_a_family_of_many_points_weighs_as_much_as_one_of_few():
    families = {"large": [0.01] * 1000} | {str(i): [1.0] for i in range(9)}
    assert interval(families).factor == pytest.approx(math.e)


def test_a_new_family_is_covered_as_promised():
    """Families that differ more than their points, as those of kernels do."""
    draw = random.Random(0)
    inside = []
    for _ in range(400):
        families = {str(i): _family(draw) for i in range(12)}
        limit = math.log(interval(families).factor)
        inside.append(abs(_family(draw)[0]) <= limit)
    assert 0.87 <= sum(inside) / len(inside) <= 0.97


def test_a_family_is_left_out_of_its_own_interval():
    families = {str(i): [0.1] for i in range(9)} | {"odd": [2.0, 0.05]}
    shares = left_out_coverage(families)
    assert shares["odd"] == 0.5
    assert shares["0"] == 1


def test_the_error_of_a_group_cancels_in_ratios():
    points = [("a", "1", 0.5), ("a", "1", 0.7), ("a", "2", -3.0), ("b", "3", 1.0), ("c", "3", 0.0)]
    assert ratio_misses(points) == {"a": [pytest.approx(-0.2)], "b+c": [1.0]}


def _family(draw):
    centre = draw.gauss(0, 0.5)
    return [centre + draw.gauss(0, 0.1) for _ in range(draw.randint(1, 40))]
