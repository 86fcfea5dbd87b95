"""Figures of agreement between modelled and measured times."""

import math

import pytest

from benchmarks.clock.scores import Compared, as_measured, score, verdict_factor
from kernel_gym.sim.constants import LAUNCH_S


def rows(family, factor, times=(20.0, 40.0, 80.0), far=True):
    return [
        Compared(f"{family}{i}", family, f"{family}|1", t, t * factor, 1 / factor if far else None)
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
    figures = score(rows("a", 3.0, far=False))["a"]
    assert (figures["points"], figures["far"]) == (3, 0)
    assert figures["median_factor"] is None
    assert figures["rho_in_groups"] == pytest.approx(1.0)


def test_a_bias_of_a_family_is_no_spread():
    assert score(rows("a", 0.5))["a"]["spread"] == pytest.approx(1.0)
    unlike = [*rows("a", 0.5, (20.0,)), *rows("a", 1.0, (40.0,)), *rows("a", 3.0, (80.0,))]
    assert score(unlike)["a"]["spread"] == pytest.approx(2.0)


def test_an_interval_comes_from_the_other_families():
    families = [rows(f"f{i}", 2.0) for i in range(9)]
    figures = score([row for each in (*families, rows("odd", 4.0)) for row in each])
    assert figures["odd"]["interval_factor"] == pytest.approx(2.0)
    assert figures["odd"]["interval_covered"] == 0
    assert figures["all"]["interval_factor"] == pytest.approx(4.0)
    assert figures["all"]["interval_covered"] == pytest.approx(0.9)
    assert (figures["all"]["interval_families"], figures["all"]["interval_level"]) == (10, 0.9)


def test_errors_of_a_whole_family_cancel_in_its_ratios():
    figures = score([*rows("a", 0.5), *rows("b", 4.0)])
    assert figures["all"]["ratio_factor"] == pytest.approx(1.0)
    assert figures["all"]["interval_factor"] == pytest.approx(4.0)


def test_a_verdict_states_the_launch_and_no_overhead():
    assert verdict_factor(24.3, 12e-6, 4.3) == pytest.approx(22 / 12)


def test_a_modelled_time_reads_as_a_measurement_does():
    assert as_measured(LAUNCH_S, 6.1, 4.3) == 6.1
    assert as_measured(LAUNCH_S + 10e-6, 6.1, 4.3) == pytest.approx(14.3)
    assert math.isfinite(as_measured(0.0, 0.0, 0.0))
