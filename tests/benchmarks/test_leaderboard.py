"""The stored figures of the leaderboard: their page is up to date, and they come from a board."""

from pathlib import Path

import pytest

from benchmarks.figures import load_benchmarks
from benchmarks.leaderboard import (
    PAGE,
    QUICKSTART,
    WRITER,
    faster_than_compiler,
    leaderboard_figures,
    leaderboard_page,
    writer_contest,
)
from benchmarks.marks import filled
from benchmarks.renewal import entry_maker
from kernel_gym.errors import InputError
from kernel_gym.report.leaderboard_pages import build_leaderboard
from kernel_gym.tasks import load_suite
from kernel_gym.training.graph_corpus import GraphSplit, graph_of, split_of
from tests.report.test_leaderboard import played

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("subject", [QUICKSTART.subject, WRITER])
def test_the_page_has_the_stored_figures(subject):
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    stored = load_benchmarks(ROOT / "benchmarks/results").subjects[subject]
    assert leaderboard_page(text, stored) == text, f"run: {stored.entries[0].command}"


def test_a_writer_is_played_on_held_out_graphs_before_and_after_grpo(tmp_path):
    contest = writer_contest(tmp_path / "run", tmp_path, graphs=4)
    suite = load_suite(contest.suite)
    splits = [split_of(graph_of(task.id)) for task in suite.tasks]
    assert splits == [GraphSplit.HELD_OUT_GRAPH] * 2 + [GraphSplit.HELD_OUT_PAIR] * 2
    run = tmp_path / "run"
    assert {f"hf:{run}/sft", f"hf:{run}/final"} < set(contest.policies)


def test_a_board_becomes_figures(tmp_path):
    runs = [played(tmp_path / name, name, speed) for name, speed in (("slow", 0), ("fast", 3.0))]
    (board,) = build_leaderboard(runs, tmp_path / "site").boards
    new_entry = entry_maker(QUICKSTART.subject)
    figures = leaderboard_figures(board, QUICKSTART, new_entry).entries
    values = {entry.id.removeprefix("leaderboard-"): float(entry.value) for entry in figures}
    assert values["fast-execution-accuracy"] == 1.0
    assert values["slow-execution-accuracy"] == 0.0
    difference = values["fast-reward"] - values["slow-reward"]
    assert values["fast-before-slow"] == pytest.approx(difference, abs=2e-3)
    assert "unseen" not in " ".join(name for name in values if name.startswith("slow"))


def test_kernels_of_a_checkpoint_are_compared_with_those_of_the_compiler(tmp_path):
    speeds = {"inductor": 2.0, "hf:run/sft": 0, "hf:run/final": 3.0}
    folders = {
        name: played(tmp_path / str(number), name, speed)
        for number, (name, speed) in enumerate(speeds.items())
    }
    new_entry = entry_maker(WRITER)
    entries = list(faster_than_compiler(folders, writer_contest(tmp_path, tmp_path, 2), new_entry))
    assert {entry.id: float(entry.value) for entry in entries} == {
        "leaderboard-writer-hf-run-sft-faster": 0.0,
        "leaderboard-writer-hf-run-final-faster": 1.0,
    }


def test_a_page_without_its_mark_is_named():
    with pytest.raises(InputError, match=r"page\.md: found no part 'figures'"):
        filled(Path("page.md"), "text", "figures", "make", "part\n")
