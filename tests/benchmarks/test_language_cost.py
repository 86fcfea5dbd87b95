"""The cost of languages: the split into building and the rest, and the table, from made rows."""

from __future__ import annotations

import datetime
import importlib.util
import os

import pytest
from rich.console import Console

from benchmarks import language_cost
from benchmarks.figures import BenchmarkEntry
from benchmarks.language_cost import (
    LANGUAGES,
    OTHERS,
    PROBLEMS,
    LanguageCost,
    building,
    cost_table,
    empty_cache,
    figures,
    left,
    measured,
    source_of,
    with_others,
)
from kernel_gym.errors import InputError
from kernel_gym.exploits.loader import with_double_block
from kernel_gym.tasks.embedded import uses
from kernel_gym.tasks.extension import is_extension

ROWS = [
    LanguageCost(language="HIP", problem="add", first=9.0, cold=1.0, warm=0.1, rest=0.5),
    LanguageCost(language="HIP", problem="softmax", first=1.0, cold=2.0, warm=0.3, rest=1.5),
    LanguageCost(language="Gluon", problem="add", first=3.0, cold=0.6, warm=0.6, rest=1.0),
]
STAGES = {
    "build": {"compiler": 2.0, "judge": 0.25, "template": 0.5},
    "train": {"recorder": 0.5, "device": 4.0},
    "close": {"recorder": 0.125},
}


def new_entry(**fields):
    more = {"machine": "epyc", "commit": "0" * 8, "date": datetime.date(2026, 1, 1), "counts": {}}
    return BenchmarkEntry(subject="language-cost", **{"clock": "none", **more, **fields})


def printed(table):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_compilers_and_the_recorder_build_and_nobody_else():
    assert building(STAGES) == 2.625


def test_a_row_splits_the_evaluations(monkeypatch):
    played = []

    def measure_each(task, sources, device):
        played.extend(sources)
        row = {"outcome": "passed", "message": "", "cpu_seconds": 10.0}
        seconds = ({"compiler": 7.0}, {"recorder": 2.0}, {"recorder": 1.0, "device": 9.0})
        return [{**row, "stages": {"train": each}} for each in seconds]

    monkeypatch.setattr(language_cost, "measure_each", measure_each)
    row = measured("Triton", "add")
    assert (row.first, row.cold, row.warm, row.rest) == (7.0, 2.0, 1.0, 9.0)
    assert played[0] != played[1] == played[2]


def test_a_kernel_that_does_not_pass_has_no_row(monkeypatch):
    refused = {"outcome": "compile_error", "message": "no header", "cpu_seconds": 1.0, "stages": {}}
    monkeypatch.setattr(language_cost, "measure_each", lambda *_: [refused])
    with pytest.raises(InputError, match="HIP, add: compile_error: no header"):
        measured("HIP", "add")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_each_language_has_each_problem_with_another_block(language, problem):
    task, source = source_of(language, problem)
    assert with_double_block(source) != source
    assert is_extension(source, task.language) == (language == "HIP extension")
    assert ("gluon" in source) == (language == "Gluon")
    assert uses("flydsl", source) == (language == "FlyDSL")
    assert uses("tilelang", source) == (language == "TileLang")


def test_the_table_has_means_and_what_is_missing():
    text = printed(cost_table(ROWS, {"HIP extension": "no clang: apt-get install clang-19"}))
    gluon, hip, extension = (
        line.split() for line in text.splitlines() if "HIP" in line or "Gluon" in line
    )
    assert hip == ["HIP", "9.00", "1.50", "0.20", "1.00"]
    assert gluon[1] == "3.00"
    assert "apt-get install clang-19" in " ".join(extension)


def test_missing_compilers_are_those_of_the_device(monkeypatch):
    from kernel_gym import devices

    true = devices.device_status("sim:gfx942")
    assert not language_cost.missing_compilers().keys() & {"Triton", "Gluon"}
    problems = {"languages": ("triton",), "problems": ("no clang",), "fixes": ("get one",)}
    status = true.__class__(**{**vars(true), **problems})
    monkeypatch.setattr(devices, "device_status", lambda name: status)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    lacks = "no clang: get one"
    assert language_cost.missing_compilers() == {
        "HIP": lacks,
        "HIP extension": lacks,
        "FlyDSL": "flydsl is missing; pip install 'kernel-gym[flydsl]'",
        "TileLang": "tilelang is missing; pip install 'kernel-gym[tilelang]'",
    }


def test_a_file_is_continued_with_what_is_left():
    pairs = left(ROWS, dict.fromkeys(("Triton", *OTHERS, "HIP extension"), "none"))
    assert pairs == [("Gluon", "softmax"), ("Gluon", "rms_norm"), ("HIP", "rms_norm")]


def test_figures_are_means_with_the_range_of_the_problems():
    entries = {entry.id: entry for entry in figures(ROWS, new_entry).entries}
    assert len(entries) == 8
    cold = entries["language-cost-hip-cold"]
    assert (float(cold.value), float(cold.interval.low), float(cold.interval.high)) == (1.5, 1, 2)
    assert cold.interval.kind == "by problem"
    assert float(entries["language-cost-hip-first"].value) == 9.0
    assert not any("extension" in name for name in entries)


def test_the_cache_is_empty_and_the_former_one_comes_back(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    with empty_cache():
        assert os.listdir(os.environ["XDG_CACHE_HOME"]) == []
    assert os.environ["XDG_CACHE_HOME"] == "/somewhere"
    monkeypatch.delenv("XDG_CACHE_HOME")
    with empty_cache():
        pass
    assert "XDG_CACHE_HOME" not in os.environ


def test_figures_of_other_languages_stay_in_the_order_of_the_table():
    stored = figures(ROWS, new_entry)
    row = ROWS[0].model_copy(update={"language": "TileLang", "cold": 4.0})
    hip = ROWS[0].model_copy(update={"cold": 8.0})
    both = with_others(figures([row, hip], new_entry), stored)
    shown = {entry.id: float(entry.value) for entry in both.entries if entry.id.endswith("-cold")}
    assert list(shown.items()) == [
        ("language-cost-gluon-cold", 0.6),
        ("language-cost-tilelang-cold", 4.0),
        ("language-cost-hip-cold", 8.0),
    ]
    assert with_others(stored, None).entries == stored.entries
