"""The include graph of the engine's C++: rooms include downwards only, and no files in a circle."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

CSRC = Path(__file__).parents[2] / "kernel_gym" / "sim" / "csrc"
FLOORS = ("lanes.h mix.h", "wave.h", "audit timing", "launch ops", "api.cpp layout.cpp")
"""The folders of `csrc`, and the files beside them, from the ground up."""
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms.split()}
FILES = sorted(path for path in CSRC.rglob("*") if path.suffix in {".cpp", ".h", ".inc"})
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def included(path: Path) -> list[Path]:
    """Returns the engine's own files that a file includes. Their paths start in `csrc`."""
    return [CSRC / name for name in INCLUDE.findall(path.read_text(encoding="utf-8"))]


def room(path: Path) -> str:
    return path.relative_to(CSRC).parts[0]


def upward(path: Path, others: list[Path]) -> list[str]:
    """Returns the rooms that a file must not include: other ones on its floor or above."""
    own = room(path)
    return [room(one) for one in others if room(one) != own and FLOOR[room(one)] >= FLOOR[own]]


def test_every_include_names_a_file_by_its_path_from_csrc():
    assert [(path, one) for path in FILES for one in included(path) if not one.is_file()] == []


def test_every_room_has_a_floor():
    assert {room(path) for path in FILES} == set(FLOOR)


@pytest.mark.parametrize("own", [name for name in FLOOR if not name.endswith(".cpp")])
def test_includes_run_down(own):
    places = {path: upward(path, included(path)) for path in FILES if room(path) == own}
    assert {path: rooms for path, rooms in places.items() if rooms} == {}


def test_an_upward_include_is_recognised():
    assert upward(CSRC / "timing/new.h", [CSRC / "launch/dispatch.h", CSRC / "wave.h"]) == [
        "launch"
    ]
    assert upward(CSRC / "lanes.h", [CSRC / "wave.h"]) == ["wave.h"]


def test_no_files_include_each_other_in_a_circle():
    TopologicalSorter({path: included(path) for path in FILES}).prepare()
