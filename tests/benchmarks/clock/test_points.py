"""Points: what was launched apart from what was measured, and rows that are none."""

import json

import pytest

from benchmarks.clock.points import read_measured, read_points
from kernel_gym.errors import InputError
from tests.benchmarks.clock.conftest import point


def written(tmp_path, *rows):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows) + "\n\n")
    return path


def test_a_point_has_nothing_of_what_was_measured(tmp_path):
    row = point(64, 256, 123.25, p20_us=123.0, p80_us=124.5, bandwidth=7.125)
    points, refused = read_points(written(tmp_path, row))
    assert not refused
    text = repr(points)
    assert not any(figure in text for figure in ("123", "124.5", "7.125"))
    assert (points[0].family, points[0].floor, points[0].overhead) == ("scale", 6.1, 4.3)


def test_measured_times_come_by_name_and_say_whose_they_are(tmp_path):
    rows = [point(1, 256, 8.0), point(2, 256, 8.0, p20_us=8.0, p80_us=10.4), {"id": "none"}]
    times = read_measured(written(tmp_path, *rows))
    assert {name: time.is_of_the_host for name, time in times.items()} == {
        "scale-1-256": False,
        "scale-2-256": True,
    }


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1]", "no object"),
        ({"id": 3}, "no object with an id"),
        ({"id": "a", "kernel": "k.py", "config": {"x": 1}}, "group"),
        ({"id": "a", "group": "g", "kernel": "k.py"}, "neither launch nor"),
        ({"id": "a", "group": "g", "kernel": 7, "config": {"x": 1}}, "kernel is a text"),
        ({"id": "a", "group": "g", "kernel": "k.py", "config": 7}, "are objects"),
        ({"id": "a", "group": "g", "kernel": "k", "config": {"x": 1}, "floor_us": -1}, "no time"),
        ('{"id":"a","group":"g","kernel":"k","config":{"x":1},"floor_us":NaN}', "no time"),
    ],
)
def test_a_row_that_is_no_point_is_named_with_its_reason(tmp_path, row, reason):
    points, refused = read_points(written(tmp_path, point(64, 256, 8.0), row))
    assert [each.identity for each in points] == ["scale-64-256"]
    assert len(refused) == 1
    assert reason in next(iter(refused.values()))


def test_a_second_row_of_one_name_refuses_both(tmp_path):
    points, refused = read_points(written(tmp_path, point(64, 256, 8.0), point(64, 256, 9.0)))
    assert not points
    assert "a second row" in refused["scale-64-256"]


def test_a_file_that_cannot_be_read_is_an_error_of_the_input(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_points(tmp_path / "absent.jsonl")
