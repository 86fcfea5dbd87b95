"""Folds by the name of the kernel, and what they say."""

import math

import pytest

from benchmarks.clock.kernel_folds import FOLDS, Kernel, fold_of, score_folds
from benchmarks.clock.scores import Compared


def compared(name, measured, modelled, family="f"):
    factor = measured / modelled
    return Compared(name, family, name, measured, modelled, factor, modelled * 1e-6, {})


def names_of_folds(count):
    """So many names of kernels for each fold."""
    by_fold = {fold: [] for fold in range(FOLDS)}
    number = 0
    while any(len(each) < count for each in by_fold.values()):
        own = by_fold[fold_of(f"kernel {number}")]
        own.append(f"kernel {number}")
        number += 1
    return {fold: each[:count] for fold, each in by_fold.items()}


def test_all_shapes_of_a_kernel_are_in_one_fold_and_folds_are_of_like_size():
    counts = [0] * FOLDS
    for number in range(1000):
        counts[fold_of(f"kernel {number}")] += 1
    assert min(counts) > 120


def test_a_kernel_has_no_part_in_its_own_correction():
    folds = names_of_folds(4)
    rows = [compared(name, 10.0, 10.0) for own in folds.values() for name in own]
    kernels = {row.identity: Kernel(row.identity) for row in rows}
    odd = [compared(f"odd {n}", 40.0, 10.0) for n in range(50)]  # one kernel, most points
    kernels |= {row.identity: Kernel(folds[0][0]) for row in odd}
    assert score_folds(odd + rows, kernels, 2.0)["all"]["median_factor"] == pytest.approx(4.0)


def test_a_bias_of_all_kernels_is_corrected_and_the_stated_interval_is_not():
    folds = names_of_folds(4)
    rows = [compared(name, 30.0, 10.0) for own in folds.values() for name in own]
    kernels = {row.identity: Kernel(row.identity, "no time", "") for row in rows}
    figures = score_folds(rows, kernels, 2.0)["all"]
    assert figures["median_factor"] == pytest.approx(1.0)
    assert figures["modelled_over_measured"] == pytest.approx(1 / 3)
    assert figures["stated_covered"] == 0.0
    assert figures["corrected_covered"] == 1.0
    assert (figures["uncalibrated"], figures["uncalibrated_otherwise"]) == (1.0, 0.0)


def test_ranks_are_over_the_shapes_of_one_kernel():
    up = [compared(f"up {n}", 10.0 + n, 20.0 + n) for n in range(5)]
    down = [compared(f"down {n}", 10.0 + n, 20.0 - n) for n in range(5)]
    few = [compared(f"few {n}", 10.0 + n, 20.0 - n) for n in range(3)]
    kernels = {row.identity: Kernel(row.identity.split()[0]) for row in up + down + few}
    figures = score_folds(up + down + few, kernels, None)["all"]
    assert (figures["kernels"], figures["kernels_ranked"]) == (3, 2)
    assert figures["rho_over_shapes"] == pytest.approx(0.0)
    assert figures["stated_covered"] is None
    assert (figures["kernels_apart"], figures["rho_apart"]) == (0, None)
    far = [compared(f"far {n}", 10.0 * 2**n, 20.0 + n) for n in range(4)]
    kernels |= {row.identity: Kernel("far") for row in far}
    figures = score_folds(up + down + far, kernels, None)["all"]
    assert (figures["kernels_apart"], figures["rho_apart"]) == (1, pytest.approx(1.0))


def test_families_are_reported_beside_all():
    rows = [compared("a", 10.0, 10.0, "one"), compared("b", 10.0, 20.0, "two")]
    kernels = {row.identity: Kernel(row.identity) for row in rows}
    figures = score_folds(rows, kernels, 1.5)
    assert {name: each["points"] for name, each in figures.items()} == {
        "one": 1,
        "two": 1,
        "all": 2,
    }
    assert figures["two"]["modelled_over_measured"] == pytest.approx(2.0)
    assert math.isclose(figures["all"]["stated_covered"], 0.5)
