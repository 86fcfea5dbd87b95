"""Results of benchmarks: the files validate, errors name file and key, the page is up to date."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kernel_gym.benchmarks import BenchmarkError, load_benchmarks
from kernel_gym.cli import app
from kernel_gym.commands.bench.table import benchmark_page

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
MAX_LINES = 200

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
    "source": "archive/diary.md#speed",
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


def test_the_page_is_the_one_the_command_prints():
    page = CliRunner().invoke(app, ["bench", "table", "--results", str(RESULTS)])
    assert page.exit_code == 0, page.output
    expected = PAGE.read_text(encoding="utf-8")
    assert page.stdout == expected, "run: kernel-gym bench table > docs/benchmarks.md"


def test_the_page_is_short():
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_sources_of_entries_lead_to_sections_that_hold_their_figures():
    """Each number of an entry from the archive stands in the section that it names."""
    missing = [
        (entry.id, number)
        for subject in load_benchmarks(RESULTS).subjects.values()
        for entry in subject.entries
        if entry.source is not None
        for number in numbers(entry)
        if not any(_stands_in(text, section(entry.source)) for text in spellings(number, entry))
    ]
    # Prose says "six" records and "empty" list of operations.
    assert missing == [("recovery-killed-driver", 6), ("isa-unchecked", 0)]


def numbers(entry):
    interval = [] if entry.interval is None else [entry.interval.low, entry.interval.high]
    return [n for n in (entry.value, *interval) if n is not None]


def spellings(number, entry):
    """How prose may write a number: 1000 as 1,000, and 924 s as 15 min 24 s."""
    texts = {str(number), f"{number:,}"}
    if isinstance(number, int) and entry.unit == "s":
        texts.add(f"{number // 60} min {number % 60} s")
    return texts


def _stands_in(text, section):
    return re.search(rf"(?<![\d.]){re.escape(text)}(?!\d|\.\d)", section) is not None


def section(source):
    """The text of a section of a page in `docs/`."""
    page, anchor = source.split("#")
    parts = re.split(r"^#+ (.*)$", (ROOT / "docs" / page).read_text(encoding="utf-8"), flags=re.M)
    titles = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in parts[1::2]]
    return parts[2::2][titles.index(anchor)]


def test_an_entry_becomes_a_row(tmp_path):
    page = benchmark_page(load_benchmarks(results(tmp_path, ENTRY)))
    assert "## Speed" in page
    assert (
        "| Evaluations<br>*One run.* "
        "| **60** a minute (range of 3 runs: 59.5 to 61); goal: 70, missed "
        "| wall | A laptop | `kernel-gym bench throughput` "
        "| [`0123abc`](archive/diary.md#speed) |\n"
    ) in page
    assert "- **A laptop**: 2 cores." in page


def test_a_range_without_a_value_and_an_older_commit_say_so(tmp_path):
    entry = {**ENTRY, "unit": "x", "clock": "none", "commit_role": "recorded"}
    del entry["value"], entry["goal"], entry["note"], entry["source"]
    page = benchmark_page(load_benchmarks(results(tmp_path, entry)))
    assert "| Evaluations | **59.5 to 61**x (range of 3 runs) | - |" in page
    assert "| recorded `0123abc` |" in page


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
    assert "**0.210** a minute" in benchmark_page(load_benchmarks(folder))


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
        answer = CliRunner().invoke(app, ["bench", "table", "--results", str(folder)])
        assert answer.exit_code == 2, answer.output
        assert answer.stdout == ""
        assert ".json" in answer.stderr
