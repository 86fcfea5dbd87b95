"""Results of benchmarks: the files validate, errors name file and key, the page is up to date."""

import datetime
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.counts import counts_of_tree
from benchmarks.figures import BenchmarkError, load_benchmarks
from benchmarks.page import OWN_PAGES, benchmark_pages
from benchmarks.renewal import entry_maker, suite_figures

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"

ENTRY = {
    "id": "rate",
    "subject": "speed",
    "metric": "Evaluations",
    "value": 60,
    "unit": "a minute",
    "interval": {"low": 59.5, "high": 61, "kind": "range of 3 runs"},
    "clock": "wall",
    "machine": "laptop",
    "command": "kernel-gym bench throughput",
    "commit": "0123abc",
    "date": "2026-11-23",
    "goal": {"text": "70", "met": False},
    "note": "One run.",
    "counts": {"exploits": 1234},
}
MACHINES = {"machines": {"laptop": {"name": "A laptop", "description": "2 cores."}}}


def results(tmp_path, *entries, machines=MACHINES):
    """A folder of results with one file, `speed.json`."""
    folder = tmp_path / "results"
    folder.mkdir()
    (tmp_path / "machines.json").write_text(json.dumps(machines))
    content = {"title": "Speed", "entries": entries}
    (folder / "speed.json").write_text(json.dumps(content))
    return folder


def first_page(benchmarks):
    """The page of the subjects that no other page has."""
    return benchmark_pages(benchmarks)["benchmarks.md"]


def test_the_pages_are_those_that_the_command_prints():
    printed = CliRunner().invoke(app, ["table", "--results", str(RESULTS)])
    assert printed.exit_code == 0, printed.output
    names = benchmark_pages(load_benchmarks(RESULTS))
    pages = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in names]
    assert printed.stdout == "\n".join(pages), "run: python -m benchmarks renew"


def test_each_subject_is_on_one_page():
    benchmarks = load_benchmarks(RESULTS)
    text = "".join(benchmark_pages(benchmarks).values())
    for name, subject in benchmarks.subjects.items():
        page = OWN_PAGES.get(name)
        assert text.count(f"## {subject.title}\n") == (page is None), name
        if page:
            mark = f"<!-- {name}: written by"
            assert mark in (ROOT / "docs" / page).read_text(encoding="utf-8")


def test_the_figures_of_the_suite_are_those_of_the_tree():
    stored = load_benchmarks(RESULTS).subjects["suite"]
    today = suite_figures(entry_maker("suite"))
    same = {"commit": "", "date": datetime.date.today()}
    assert [entry.model_copy(update=same) for entry in stored.entries] == [
        entry.model_copy(update=same) for entry in today.entries
    ], "run: python -m benchmarks renew"


def test_counts_are_those_of_the_tree():
    benchmarks = load_benchmarks(RESULTS)
    today = counts_of_tree()
    stale = [
        f"{entry.id} speaks of {count} {name}, there are {today[name]}; run: {entry.command}"
        for entry in every_entry(benchmarks)
        if not benchmarks.machines[entry.machine].gpu
        for name, count in entry.counts.items()
        if count != today[name]
    ]
    assert stale == [], "then: python -m benchmarks renew [--findings FILE]"


def test_a_figure_of_the_suite_or_of_exploits_has_counts():
    """A command that plays the whole tree speaks of its size."""
    whole = re.compile(r"kernel-gym (exploits|admit)|python -m benchmarks (tasks|operators)")
    entries = every_entry(load_benchmarks(RESULTS))
    assert [e.id for e in entries if whole.match(e.command) and not e.counts] == []


def test_commands_of_entries_exist():
    missing = [
        entry.command
        for entry in every_entry(load_benchmarks(RESULTS))
        for path in re.findall(r"\b(?:scripts|training|tests)/[\w/.]+", entry.command)
        if not (ROOT / path).exists()
    ]
    assert missing == []


def every_entry(benchmarks):
    return [entry for subject in benchmarks.subjects.values() for entry in subject.entries]


def test_an_entry_becomes_a_row(tmp_path):
    page = first_page(load_benchmarks(results(tmp_path, ENTRY)))
    assert "## Speed" in page
    assert (
        "| Evaluations<br>*One run.* "
        "| **60** a minute (range of 3 runs: 59.5 to 61); goal: 70, missed "
        "| 1,234 exploits | wall | A laptop | `kernel-gym bench throughput` "
        "| `0123abc`, 2026-11-23 |\n"
    ) in page
    assert "- **A laptop**: 2 cores." in page


def test_a_range_without_a_value_and_without_counts_says_so(tmp_path):
    entry = {**ENTRY, "unit": "x", "clock": "none", "counts": {}}
    del entry["value"], entry["goal"], entry["note"]
    page = first_page(load_benchmarks(results(tmp_path, entry)))
    assert "| Evaluations | **59.5 to 61**x (range of 3 runs) |  | - |" in page


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"clock": "guessed"}, "clock"),
        ({"value": "60"}, "value"),
        ({"value": float("nan")}, "value"),
        ({"value": 58}, "lies outside"),
        ({"value": None, "interval": None}, "neither value nor interval"),
        ({"interval": {"low": 2, "high": 1, "kind": "range"}}, "low is above high"),
        ({"commit": "HEAD"}, "commit"),
        ({"date": "yesterday"}, "date"),
        ({"command": ""}, "command"),
        ({"counts": {"kernels": 3}}, "counts"),
        ({"metric": "two\nlines"}, "metric"),
        ({"speed": 1}, "speed"),
        ({"subject": "other"}, "subject"),
        ({"machine": "cluster"}, "machine"),
    ],
)
def test_an_error_names_the_file_and_the_key(tmp_path, change, key):
    folder = results(tmp_path, ENTRY, {**ENTRY, "id": "other", **change})
    with pytest.raises(BenchmarkError) as error:
        load_benchmarks(folder)
    assert str(folder / "speed.json") in str(error.value)
    assert "entries.1" in str(error.value)
    assert key in str(error.value)


def test_a_decimal_keeps_its_last_zeros(tmp_path):
    folder = results(tmp_path, {**ENTRY, "value": "NUMBER", "interval": None})
    file = folder / "speed.json"
    file.write_text(file.read_text().replace('"NUMBER"', "0.210"))
    assert "**0.210** a minute" in first_page(load_benchmarks(folder))


@pytest.mark.parametrize("content", ["", "[", "[]", '{"title": "x", "entries": []}', "\0"])
def test_a_malformed_file_is_named(tmp_path, content):
    folder = results(tmp_path, ENTRY)
    (folder / "speed.json").write_text(content)
    with pytest.raises(BenchmarkError, match=re.escape(str(folder / "speed.json"))):
        load_benchmarks(folder)


def test_an_id_occurs_once(tmp_path):
    with pytest.raises(BenchmarkError, match=r"speed.json: entries.1.id: 'rate' is also in"):
        load_benchmarks(results(tmp_path, ENTRY, ENTRY))


def test_missing_and_broken_files_are_bad_input_of_the_command(tmp_path):
    for folder in (tmp_path, results(tmp_path)):
        answer = CliRunner().invoke(app, ["table", "--results", str(folder)])
        assert answer.exit_code == 2, answer.output
        assert answer.stdout == ""
        assert ".json" in answer.stderr
