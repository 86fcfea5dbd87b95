"""Figures of agreement between modelled and measured times."""

import math

import pytest

from kernel_gym.clock.scores import Compared, as_measured, score
from kernel_gym.sim.constants import LAUNCH_S


def rows(family, factor, times=(20.0, 40.0, 80.0), **ends):
    return [
        Compared(f"{family}{i}", family, f"{family}|1", t, t * factor, **ends)
        for i, t in enumerate(times)
    ]


def test_a_common_factor_is_corrected_from_the_other_families():
    figures = score([*rows("a", 0.5), *rows("b", 0.5), *rows("c", 1.0)])
    assert figures["a"]["modelled_over_measured"] == pytest.approx(0.5)
    assert figures["c"]["correction"] == pytest.approx(2.0)
    assert figures["c"]["median_factor"] == pytest.approx(2.0)
    assert figures["a"]["rho_in_groups"] == pytest.approx(1.0)
    assert figures["all"]["mean_rho_of_families"] == pytest.approx(1.0)


def test_a_family_that_is_held_out_by_name_decides_no_correction():
    together = [*rows("a", 0.5), *rows("b", 1.0), *rows("c", 4.0)]
    figures = score(together, ["a", "c"])
    assert set(figures) == {"a", "c", "all"}
    assert figures["a"]["correction"] == figures["c"]["correction"] == pytest.approx(1.0)


def test_regret_is_that_of_the_variant_that_the_model_calls_fastest():
    group = [Compared(str(i), "a", "g", t, m) for i, (t, m) in enumerate([(10, 3), (30, 2)])]
    figures = score(group)["a"]
    assert figures["regret_worst"] == pytest.approx(2.0)
    assert figures["rho_in_groups"] == pytest.approx(-1.0)


def test_times_near_the_floor_have_ranks_but_no_factor():
    figures = score(rows("a", 3.0, is_far=False))["a"]
    assert (figures["points"], figures["far"]) == (3, 0)
    assert figures["median_factor"] is None
    assert figures["rho_in_groups"] == pytest.approx(1.0)


def test_an_interval_comes_from_the_other_families():
    times = tuple(20.0 + i for i in range(12))
    spread = [
        Compared(str(t), "a", "a|1", t, t * (2.0 if i % 2 else 0.5)) for i, t in enumerate(times)
    ]
    figures = score([*spread, *rows("b", 1.5, times), *rows("c", 9.0)])
    assert figures["b"]["interval_factor"] == pytest.approx(9 / 2)
    assert figures["b"]["covered"] == 1
    assert figures["c"]["covered"] == 0


def test_few_points_bound_nothing():
    figures = score([*rows("a", 0.5), *rows("b", 0.5)])
    assert figures["a"]["interval_factor"] is None
    assert figures["a"]["covered"] == 1


def test_a_modelled_time_reads_as_a_measurement_does():
    assert as_measured(LAUNCH_S, 6.1, 4.3) == 6.1
    assert as_measured(LAUNCH_S + 10e-6, 6.1, 4.3) == pytest.approx(14.3)
    assert math.isfinite(as_measured(0.0, 0.0, 0.0))
