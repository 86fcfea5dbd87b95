"""The kept rows of measured kernels of an MI355X, which no verdict reads."""

import math
import statistics
from pathlib import Path

import pytest

import benchmarks.clock
from kernel_gym.sim.constants import SAME_TIMES
from kernel_gym.sim.timing import compared

PATH = Path(benchmarks.clock.__file__).with_name("compared_gfx950.json")


def test_the_kept_rows_are_of_this_chip_and_of_times_that_the_model_still_has():
    kept = compared.read(PATH)
    assert kept.device == "gfx950"
    assert kept.timing_model in SAME_TIMES[kept.device]
    families = {row.family for row in kept.rows}
    assert families >= {"flydsl_hgemm", "flydsl_bpreshuffle", "flydsl_moe1", "flydsl_moe2"}


def test_modelled_times_of_this_chip_have_the_errors_of_the_page():
    rows = compared.read(PATH).rows
    errors = [abs(math.log(row.factor)) for row in rows]
    assert len(rows) == 876
    assert math.exp(statistics.median(errors)) == pytest.approx(1.10, abs=0.005)
    assert 0.9 < statistics.median(row.factor for row in rows) < 1.1
    assert max(errors) < math.log(4)


def test_only_products_with_atomic_additions_are_far_off():
    rows = compared.read(PATH).rows
    far = [row for row in rows if abs(math.log(row.factor)) > math.log(2)]
    assert len(far) == 59
    assert {(row.family, row.bound) for row in far} == {("flydsl_hgemm", "atomics")}


def test_the_interval_of_the_other_chip_has_about_nine_of_ten_rows():
    bound = math.log(compared.stored().time().factor)
    rows = compared.read(PATH).rows
    inside = sum(abs(math.log(row.factor)) <= bound for row in rows) / len(rows)
    assert 0.85 < inside < 0.97


def test_verdicts_do_not_read_them():
    assert compared.stored().device == "gfx942"
    assert not any(row.family.startswith("flydsl") for row in compared.stored().rows)
