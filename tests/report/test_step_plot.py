"""The small step plot: readable axes, nothing outside, words for those who do not see it."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from kernel_gym.report.step_plot import HEIGHT, WIDTH, step_plot

CASES = {
    "one point": [(1, 0.3)],
    "no success yet": [(1, 0.0), (2, 0.0), (3, 1.5)],
    "many": [(turn, 1 + turn / 7) for turn in range(1, 60)],
    "minutes": [(0.25, 0.1), (0.3, 12.0)],
}


@pytest.mark.parametrize("points", CASES.values(), ids=CASES)
def test_a_plot_is_well_formed_and_within_its_frame(points):
    svg = step_plot(points, "submissions", "speedup <best>", 1.0, "best speedup & more")
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == "best speedup & more"
    dots = [node for node in root.iter() if node.tag.endswith("circle")]
    assert len(dots) == len(points)
    for dot in dots:
        assert 0 < float(dot.get("cx")) < WIDTH
        assert 0 < float(dot.get("cy")) < HEIGHT
    ticks = [node.text for node in root.iter() if node.tag.endswith("text")]
    assert 4 <= len(ticks) <= 20
    assert not any(re.search(r"\d{7}", tick) for tick in ticks)
