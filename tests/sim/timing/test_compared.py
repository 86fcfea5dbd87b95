"""Rows of the clock's comparison with measured kernels, and what lies outside of them."""

import math
import statistics
from pathlib import Path

import pytest

from kernel_gym.sim.constants import TIMING_MODEL_VERSION
from kernel_gym.sim.timing.compared import ComparedKernels, Residual, merged, read, stored, write
from kernel_gym.sim.timing.intervals import left_out_coverage, ratio_misses

PROFILE = {
    "bound_by": "hbm",
    "utilisation": {"matrix": 0.0},
    "scratch_bytes": 0,
    "atomics_us": 0.0,
    "code_bytes": 2000,
}
ROW = Residual("a", 0, 1.5, 20.0, "memory", False, False, False, 3000)
ROWS = (ROW, ROW._replace(microseconds=40.0), ROW._replace(family="b"))
LONG = ROW._replace(microseconds=90.0, family="b")
KNOWN = ComparedKernels(TIMING_MODEL_VERSION, "gfx942", "3.3.0", (*ROWS, LONG))


def test_the_stored_rows_have_their_types():
    comparison = stored()
    assert comparison.device == "gfx942"
    assert len(comparison.rows) > 100
    for row in comparison.rows:
        for value, kind in zip(row, Residual.__annotations__.values(), strict=True):
            assert type(value).__name__ == kind.__forward_arg__
        assert 0 < row.factor < math.inf
        assert 0 < row.microseconds < math.inf
        assert "/" not in row.family


def test_the_stored_intervals_are_bounded():
    comparison = stored()
    for each in (comparison.time(), comparison.ratio()):
        assert each.level == 0.9  # the words of `kernel_gym.formatting.calibration` promise it
        assert 1 < each.factor < 10


def test_the_stored_rows_know_launches_that_memory_bounds_if_they_are_long():
    known = stored()
    assert known.why_not("gfx942", 30e-6, PROFILE) == ""
    assert "at least" in known.why_not("gfx942", 5e-6, PROFILE)
    assert "launch" in known.why_not("gfx942", 30e-6, PROFILE | {"bound_by": "launch"})


def test_the_page_says_what_the_rows_say():
    comparison = stored()
    times = {}
    for row in comparison.rows:
        times.setdefault(row.family, []).append(math.log(row.factor))
    pairs = ratio_misses((r.family, str(r.group), math.log(r.factor)) for r in comparison.rows)
    page = (Path(__file__).parents[3] / "docs" / "timing-intervals.md").read_text(encoding="utf-8")
    page = " ".join(page.split())
    time, ratio = comparison.time(), comparison.ratio()
    shortest = sorted(min(r.microseconds for r in comparison.rows if r.family == f) for f in times)
    names = ("softmax", "naive_softmax", "layernorm", "rmsnorm_fwd")
    new = [row for row in comparison.rows if row.family in names]
    bounded = [row for row in new if row.bound == "memory"]
    worst = math.exp(max(abs(math.log(row.factor)) for row in bounded))
    for words in (
        f"wrong by {time.factor:.1f}x in either direction, and a ratio of two times for one "
        f"problem by {ratio.factor:.1f}x",
        f"include {len(comparison.rows)} far points from {time.families} families",
        f"{time.factor:.2f} (all) | **{statistics.mean(left_out_coverage(times).values()):.0%}",
        f"{ratio.factor:.2f} (all) | **{statistics.mean(left_out_coverage(pairs).values()):.0%}",
        f"the median error over families is a factor of {_typical(pairs):.2f} for a ratio and "
        f"{_typical(times):.2f} for a time",
        f"below {shortest[1]:.1f} us",
        f"memory bandwidth limits {len(bounded)} of these {len(new)} launches",
        f"wrong by a factor of at most {worst:.2f}.",
    ):
        assert words.replace("%", " %") in page


def _typical(misses):
    return math.exp(
        statistics.median(statistics.median(map(abs, each)) for each in misses.values())
    )


def test_a_comparison_survives_its_file(tmp_path):
    path = tmp_path / "compared.json"
    write(path, KNOWN)
    assert read(path) == KNOWN
    path.write_text(path.read_text().replace("code_bytes", "bytes"))
    with pytest.raises(ValueError, match="other columns"):
        read(path)


def latest(*rows, **changed):
    facts = {"timing_model": TIMING_MODEL_VERSION, "device": "gfx942", "triton": "3.3.0"}
    return ComparedKernels(**facts | changed, rows=rows)


def test_families_that_were_not_predicted_again_keep_their_rows():
    """Groups are numbers of one file, so the new ones must not meet those that stay."""
    former = latest(ROW._replace(family="b", group=3), ROW, ROW._replace(group=1), timing_model="9")
    again = merged(former, latest(ROW._replace(factor=2.0), ROW._replace(family="c")), {"a", "c"})
    assert again.timing_model == TIMING_MODEL_VERSION
    assert [(r.family, r.group, r.factor) for r in again.rows] == [
        ("b", 0, 1.5),
        ("a", 1, 2.0),
        ("c", 1, 1.5),
    ]
    gone = merged(former, latest(), {"b"})  # predicted again, and no point is compared any more
    assert [(r.family, r.group) for r in gone.rows] == [("a", 0), ("a", 1)]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"device": "gfx950"}, "another device: gfx950"),
        ({"triton": "3.8.0"}, "another triton: 3.8.0"),
        ({"timing_model": "8"}, "times of version 8"),
    ],
)
def test_rows_of_another_kind_are_not_continued(changed, reason):
    with pytest.raises(ValueError, match=reason):
        merged(latest(ROW, **changed), latest(ROW), {"b"})


def test_rows_continue_those_of_a_version_that_changed_another_chip():
    old = {"timing_model": "10", "device": "gfx950"}
    with pytest.raises(ValueError, match="times of version 10"):
        merged(latest(ROW, **old), latest(ROW, device="gfx950"), {"b"})
    merged(latest(ROW, timing_model="10"), latest(ROW), {"b"})
    assert "only version 10" in latest(ROW, **old).why_not("gfx950", 30e-6, PROFILE)
    assert latest(*ROWS, LONG, timing_model="10").why_not("gfx942", 30e-6, PROFILE) == ""


def test_a_launch_like_compared_ones_is_calibrated():
    assert KNOWN.why_not("gfx942", 30e-6, PROFILE) == ""


@pytest.mark.parametrize(
    ("arch", "seconds", "changed", "reason"),
    [
        ("gfx950", 30e-6, {}, "no time of gfx950 was compared"),
        ("gfx942", 30e-6, {"bound_by": "lds"}, "bound by lds"),
        ("gfx942", 30e-6, {"bound_by": "launch"}, "mostly consists of its launch"),
        ("gfx942", 30e-6, {"utilisation": {"matrix": 0.2}}, "matrix units"),
        ("gfx942", 30e-6, {"scratch_bytes": 8}, "scratch"),
        ("gfx942", 30e-6, {"atomics_us": 1.0}, "atomically"),
        ("gfx942", 30e-6, {"code_bytes": 3001}, "at most 3000 bytes"),
        ("gfx942", 3e-6, {}, "at least 20 us"),
        ("gfx942", 60e-6, {}, "at most 40 us"),
    ],
)
def test_a_launch_unlike_compared_ones_is_not(arch, seconds, changed, reason):
    assert reason in KNOWN.why_not(arch, seconds, PROFILE | changed)


def test_an_older_comparison_says_nothing():
    older = ComparedKernels("1", "gfx942", "3.3.0", KNOWN.rows)
    assert "only version 1" in older.why_not("gfx942", 30e-6, PROFILE)
