"""Which points are predicted."""

from benchmarks.clock.drawing import draw, languages, of_device, of_size
from benchmarks.clock.points import Point


def point(name, family="f", size=1, gfx="gfx950"):
    launch = {"language": "flydsl", "gfx": gfx, "family": family}
    launch["problem"] = {"M": size, "N": 1, "K": 1}
    return Point(name, family, "g", "k", launch=launch)


def test_points_of_another_chip_are_left_out_with_the_reason():
    kept, other = of_device("gfx950")([point("a"), point("b", gfx="gfx942"), Point("t", *"fgk")])
    assert [each.identity for each in kept] == ["a", "t"]
    assert other == {"b": "measured on gfx942, not on gfx950"}


def test_large_points_are_left_out_with_the_reason():
    points = [point("s", size=2), point("a", size=5), point("b", size=6), Point("t", *"fgk")]
    kept, other = of_size(2.0, 5.0)(points)
    assert [each.identity for each in kept] == ["a", "t"]
    assert "at most 2" in other["s"]
    assert "more than 5" in other["b"]
    assert not of_size(0.0, None)([point("b", size=1 << 40)])[1]


def test_each_family_is_drawn_by_seed_and_small_problems_come_first():
    points = [point(f"{family}{n}", family, 10 - n) for family in "ab" for n in range(9)]
    drawn = draw(points, 3, 0)
    assert sorted(each.family for each in drawn) == ["a"] * 3 + ["b"] * 3
    sizes = [each.launch["problem"]["M"] for each in drawn]
    assert sizes == sorted(sizes)
    assert draw(points, 3, 0) == drawn
    assert draw(points, 3, 1) != drawn
    assert len(draw(points, None, 0)) == 18


def test_only_languages_beside_triton_are_named():
    assert languages([point("a"), Point("t", *"fgk", launch={"function": "f"})]) == {"flydsl"}
