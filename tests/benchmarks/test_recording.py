"""The picture of a terminal: well-formed, complete, and it loads nothing."""

import xml.etree.ElementTree as ET
from pathlib import Path

from benchmarks.recording import COMMANDS, PICTURE, terminal_picture

ROOT = Path(__file__).parents[2]


def words(picture):
    return "".join(ET.fromstring(picture).itertext()).replace("\xa0", " ")


def test_the_picture_has_both_verdicts_and_loads_nothing():
    picture = (ROOT / PICTURE).read_text(encoding="utf-8")
    text = words(picture)
    for command in COMMANDS:
        assert " ".join(command) in text, "run: python -m benchmarks recording"
    assert "wrong_values" in text
    assert "passed" in text
    assert "url(http" not in picture
    assert "@font-face" not in picture


def test_escape_sequences_become_colours_and_markup_stays_text():
    picture = terminal_picture([("run", "\x1b[31m<b>refused</b>\x1b[0m\n")])
    assert "<b>refused</b>" in words(picture)
    assert "\x1b" not in picture
