"""The figures as data: the same numbers as the page, in CSV and JSON."""

import csv
import json

import pytest
from typer.testing import CliRunner

from kernel_gym.analysis.summary import summarise
from kernel_gym.cli import app
from kernel_gym.report.figures import figures, write_figures
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import get_task
from tests.report.runs import CONFIG, TASKS, measures, played


@pytest.fixture
def store(tmp_path):
    return played(tmp_path / "run")


def tables(store):
    return figures(store, summarise(store), measures(store))


def test_every_table_is_rows_of_the_same_columns(store):
    for name, rows in tables(store).items():
        assert rows, name
        assert len({tuple(row) for row in rows}) == 1, name


def test_attempts_and_quadrants(store):
    figures = tables(store)
    assert [row["origin"] for row in figures["attempts"]] == ["rescued", "persistent", "never"]
    assert [row["speedup"] for row in figures["attempts"]] == [2.0, 0.5, None]
    counts = {row["quadrant"]: row["attempts"] for row in figures["quadrants"]}
    assert counts == {
        "faster_on_both": 1,
        "faster_on_seen_only": 0,
        "faster_on_unseen_only": 1,
        "faster_on_neither": 0,
    }
    assert [row["rescued_speedup"] for row in figures["trajectory"]] == [None, 2.0]
    assert [row["persistent_speedup"] for row in figures["trajectory"]] == [0.5, 0.5]


def test_the_roofline_has_each_timed_workload_of_the_best_with_its_least_cost(store):
    rows = [row for row in tables(store)["roofline"] if row["task"] == TASKS[0]]
    assert [row["split"] for row in rows] == ["train", "train", "unseen"]  # adversarial: not timed
    problem, dims = get_task(TASKS[0]).problem, {"rows": 64, "cols": 1000}
    assert rows[0]["bytes"] == problem.bytes(dims)
    assert rows[0]["flops"] == problem.flops(dims)
    assert rows[0]["of_roofline"] == pytest.approx(0.4)  # 4 us of 10


def test_csv_and_json_hold_the_same(store):
    figures = tables(store)
    write_figures(store, figures)
    stored = json.loads((store.folder / "figures" / "figures.json").read_text(encoding="utf-8"))
    assert stored["tables"] == figures
    assert stored["run"]["device"] == "sim:gfx942"
    for name, rows in figures.items():
        with (store.folder / "figures" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            read = list(csv.DictReader(file))
        expected = [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows]
        assert read == expected, name


def test_the_command_writes_both_and_overwriting_the_run_removes_them(store):
    result = CliRunner().invoke(app, ["report", str(store.folder), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["figures"] == str(store.folder / "figures")
    assert (store.folder / "figures" / "fast_p.csv").is_file()
    RunStore.start(store.folder, CONFIG, overwrite=True)
    assert not (store.folder / "figures").exists()
