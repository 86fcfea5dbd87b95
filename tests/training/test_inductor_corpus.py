"""A corpus of TorchInductor's kernels: what is kept, what is refused, and that it continues."""

import json
from concurrent.futures import Future
from pathlib import Path
from typing import ClassVar

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.policies.base import PolicyError, Reply, Stop
from kernel_gym.records import Evaluation, Outcome, Stage
from kernel_gym.training import inductor_corpus
from kernel_gym.training.corpus import CorpusError, read_corpus
from kernel_gym.training.corpus_export import JudgedRows, write_dataset
from kernel_gym.training.graph_corpus import GraphSplit, admitted_tasks, graph_of, split_of
from kernel_gym.training.inductor_corpus import JOURNAL, refusals, try_graphs

TASKS = [
    "triton2triton/generated:seed=633,depth=3",
    "triton2triton/generated:seed=76,depth=2",
    "triton2triton/generated:seed=1052,depth=4",
    "triton2triton/generated:seed=2009,depth=3",
    "triton2triton/generated:seed=1364,depth=4",
]
PASSES, WRONG, DECLINED, ENDS, INFRA = TASKS
MODULE = "import torch\n\n\ndef fused(x):\n    return torch.empty_strided({})\n"


class Compiler:
    """Writes a module for a task that holds its name, as PyTorch's compiler would."""

    asked: ClassVar[list[str]] = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def answer(self, task):
        self.asked.append(task.id)
        if task.id == ENDS:
            raise PolicyError("the process ended")
        if task.id == DECLINED:
            return Stop("the graph calls aten.sort")
        source = MODULE.format(repr(task.id))
        return Reply(source, source)


class Judge:
    """Has a verdict for each task."""

    workers, device, seed = 2, "sim:gfx942", 0

    def submit(self, task, source):
        assert task in source
        outcome = {WRONG: Outcome.WRONG_VALUES, INFRA: Outcome.INFRA}.get(task, Outcome.PASSED)
        future = Future()
        future.set_result(
            Evaluation.model_construct(
                outcome=outcome,
                stage=Stage.DONE,
                clock="modelled",
                speedup=2.0,
                unseen_speedup=3.0,
                message=f"it is {outcome}",
            )
        )
        return future


@pytest.fixture
def tried(tmp_path, monkeypatch):
    """Tries some tasks with a journal in the folder of the test."""
    monkeypatch.setattr(inductor_corpus, "InductorProcess", Compiler)
    monkeypatch.setattr(Compiler, "asked", [])

    def play(tasks, judge=None):
        seen = []
        prompt = "prompt of {0.id}".format
        result = try_graphs(
            tasks, prompt, judge or Judge(), tmp_path / JOURNAL, lambda: seen.append(1)
        )
        assert len(seen) == len(tasks)
        return result

    return play


def test_right_kernels_are_pairs_and_others_are_refused_with_a_reason(tried):
    results = tried(TASKS)
    assert [each.row.task for each in results] == TASKS
    assert [(each.refused, each.message) for each in results] == [
        ("", ""),
        ("judged wrong_values", "it is wrong_values"),
        ("not compiled", "the graph calls aten.sort"),
        ("compiler ended", "the process ended"),
        ("judged infra", "it is infra"),
    ]
    pair = results[0].row
    assert (pair.prompt, pair.structure, pair.speedup) == (f"prompt of {PASSES}", "inductor", 2.0)
    assert PASSES in pair.source
    assert pair.outcome is Outcome.PASSED
    counted = "1 judged wrong_values, 1 not compiled, 1 compiler ended, 1 judged infra"
    assert refusals(results) == counted


def test_a_later_run_continues_after_a_cut_off_line_and_tries_failures_of_the_machine_again(
    tried, tmp_path
):
    first = tried(TASKS[:2])
    with (tmp_path / JOURNAL).open("a") as journal:
        journal.write('{"made_by": "cut o')
    assert tried(TASKS)[:2] == first
    assert sorted(Compiler.asked) == sorted(TASKS)
    Compiler.asked.clear()
    tried(TASKS)
    assert sorted(Compiler.asked) == sorted([ENDS, INFRA])


def test_a_journal_of_another_device_is_named(tried):
    tried(TASKS[:1])
    other = Judge()
    other.device = "sim:gfx950"
    with pytest.raises(CorpusError, match=r"sim:gfx942 with seed 0, now .*sim:gfx950.*delete it"):
        tried(TASKS, other)


def test_a_dataset_has_the_pairs_first_and_a_card_with_counts_and_licence(tried, tmp_path):
    none = JudgedRows([], 0, 0)
    write_dataset(tmp_path, none, none, "command", "sim:gfx942", tried(TASKS))
    (row,) = read_corpus(tmp_path / "train.jsonl")
    assert row.task == PASSES
    card = (tmp_path / "README.md").read_text()
    assert "license: [apache-2.0, bsd-3-clause]\n" in card
    assert "asked for 5 training graphs, and 1 of its kernels passed" in card
    assert "| train | 1 | 1 | 3 | 1 |" in card
    assert "1 not compiled" in card
    write_dataset(tmp_path, none, none, "command", "sim:gfx942")
    card = (tmp_path / "README.md").read_text()
    assert "license: apache-2.0\n" in card
    assert "Inductor" not in card


def test_graphs_are_training_graphs_and_more_begin_with_the_same_ones():
    assert admitted_tasks(GraphSplit.TRAIN, 3, 4, "inductor 0") == TASKS[:3]
    assert admitted_tasks(GraphSplit.TRAIN, 5, 4, "inductor 0") == TASKS
    assert admitted_tasks(GraphSplit.TRAIN, 3, 4, "inductor 1") != TASKS[:3]
    assert {split_of(graph_of(task)) for task in TASKS} == {GraphSplit.TRAIN}


@pytest.mark.slow
def test_the_command_keeps_what_the_compiler_writes_and_the_judge_passes(tmp_path):
    """Slow: it starts PyTorch's compiler and judges a kernel on a simulated GPU."""
    arguments = ["corpus", str(tmp_path), "--pairs", "0", "--held-out", "2", "--workers", "1"]
    result = CliRunner().invoke(app, [*arguments, "--max-depth", "2", "--inductor", "1"])
    assert result.exit_code == 0, result.output
    (row,) = map(json.loads, Path(tmp_path / "train.jsonl").read_text().splitlines())
    assert row["structure"] == "inductor"
    assert row["outcome"] == "passed"
    assert row["speedup"] > 0
    (task,) = admitted_tasks(GraphSplit.TRAIN, 1, 2, "inductor 0")
    assert row["task"] == task
    assert "def kernel0(" in row["completion"][0]["content"]
    assert "1 of 1 graphs have TorchInductor's kernel; none refused" in result.output
