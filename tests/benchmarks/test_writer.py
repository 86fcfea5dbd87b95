"""Figures of a policy that writes kernels: shares, speeds and samples from made replies."""

import datetime
from pathlib import Path

import pytest

from benchmarks import seeds, writer_arms
from benchmarks.figures import BenchmarkEntry, load_benchmarks
from benchmarks.writer import figures, samples_page
from kernel_gym.errors import InputError
from kernel_gym.records import Outcome, Stage
from kernel_gym.training.corpus import CorpusRow
from kernel_gym.training.graph_corpus import GraphSplit, graph_of, graph_tasks
from kernel_gym.training.scoring import Scored
from tests.records import passing

ROOT = Path(__file__).parents[2]
GRAPHS, PAIRS = (
    [f"triton2triton/{next(tasks)}" for _ in range(1)]
    for tasks in (
        graph_tasks([split], 3, "test")
        for split in (GraphSplit.HELD_OUT_GRAPH, GraphSplit.HELD_OUT_PAIR)
    )
)
TASKS = [*GRAPHS, *PAIRS]


def new_entry(**fields):
    more = {"commit": "0" * 8, "date": datetime.date(2026, 1, 1), "counts": {}}
    return BenchmarkEntry(subject="training-writer-cpu", machine="epyc", **more, **fields)


def reply(task, outcome, stage, speedup=None):
    return CorpusRow(
        task=task,
        source="def fused(): ...",
        reply="def fused(): ...",
        outcome=outcome,
        stage=stage,
        speedup=speedup,
        unseen_speedup=speedup and speedup / 2,
        reward=0.5 if speedup else 0.1,
    )


def values(subject):
    return {entry.id.removeprefix("writer-cpu-"): float(entry.value) for entry in subject.entries}


def test_shares_and_speeds_are_those_of_the_replies():
    wrong = reply(TASKS[1], Outcome.UNSEEN_FAILED, Stage.UNSEEN)
    before = [reply(TASKS[0], Outcome.WRONG_VALUES, Stage.TRAIN), wrong]
    after = [reply(TASKS[0], Outcome.PASSED, Stage.DONE, 4.0), wrong]
    default = passing(2.0, 1.0, TASKS[0])
    defaults = {task: Scored(task, "", default, 0.3, 0.0, False) for task in TASKS}
    subject = figures({"sft": before, "final": after}, defaults, new_entry)
    figure = values(subject)
    assert figure["sft-right"] == 0.0
    assert figure["sft-shown"] == 0.5
    assert figure["final-right"] == 0.5
    assert figure["final-right-new-graphs"] == 1.0
    assert figure["final-right-new-pairs"] == 0.0
    assert figure["final-shown"] == 1.0
    assert figure["final-bound"] == 0.5
    assert figure["final-speed-shown"] == 2.0
    assert figure["final-speed-new"] == 2.0
    assert figure["final-faster"] == 1.0
    assert figure["grpo-accuracy"] == 0.5
    assert figure["grpo-reward"] == 0.2
    assert "sft-faster" not in figure


def test_arms_are_compared_on_the_same_graphs():
    wrong = reply(TASKS[1], Outcome.UNSEEN_FAILED, Stage.UNSEEN)
    right = [reply(task, Outcome.PASSED, Stage.DONE, 4.0) for task in TASKS]
    unpaid = {TASKS[0]: [right[0]], TASKS[1]: [wrong]}
    each = {task: [row] for task, row in zip(TASKS, right, strict=True)}
    defaults = {task: Scored(task, "", passing(2.0, 1.0, task), 0.3, 0.0, False) for task in TASKS}
    arms = {"unpaid": unpaid, "each_step": each}
    subject = writer_arms.figures(unpaid, arms, defaults, new_entry)
    figure = {e.id.removeprefix("transfer-"): float(e.value) for e in subject.entries}
    assert figure["sft-right"] == figure["unpaid-right"] == figure["unpaid-bound"] == 0.5
    assert figure["each-step-right"] == figure["each-step-shown"] == 1.0
    assert figure["each-step-right-gain"] == 0.5
    assert figure["each-step-bound-gain"] == -0.5
    assert figure["each-step-speed-new"] == 2.0
    assert figure["each-step-right-rise"] == 0.5
    assert figure["unpaid-reward-rise"] == 0.0


def test_seeds_stand_beside_each_other_with_their_mean():
    right = [reply(task, Outcome.PASSED, Stage.DONE, 4.0) for task in TASKS]
    wrong = [reply(task, Outcome.UNSEEN_FAILED, Stage.UNSEEN) for task in TASKS]
    defaults = {task: Scored(task, "", passing(2.0, 1.0, task), 0.3, 0.0, False) for task in TASKS}
    each, half, none = (
        {row.task: [row] for row in rows} for rows in (right, [right[0], wrong[1]], wrong)
    )

    def of(seed, unpaid):
        arms = {"unpaid": unpaid, "each_step": each}
        return writer_arms.figures(none, arms, defaults, new_entry, seed)

    first = seeds.beside_other_seeds(of(0, none), (), "transfer", new_entry)
    assert not [e for e in first.entries if "seed" in e.id]
    both = seeds.beside_other_seeds(of(1, half), first.entries, "transfer", new_entry)
    again = seeds.beside_other_seeds(of(1, half), both.entries, "transfer", new_entry)
    assert again == both
    figure = {e.id.removeprefix("transfer-"): e for e in both.entries}
    assert float(figure["each-step-right-gain"].value) == 1.0
    assert float(figure["seed-1-each-step-right-gain"].value) == 0.5
    mean = figure["all-seeds-each-step-right-gain"]
    assert float(mean.value) == 0.75
    assert (float(mean.interval.low), float(mean.interval.high)) == (0.5, 1.0)


def test_runs_of_a_configuration_stand_beside_each_other_too():
    wrong = [reply(task, Outcome.UNSEEN_FAILED, Stage.UNSEEN) for task in TASKS]
    right = [reply(task, Outcome.PASSED, Stage.DONE, 4.0) for task in TASKS]
    defaults = {task: Scored(task, "", passing(2.0, 1.0, task), 0.3, 0.0, False) for task in TASKS}

    def of(seed, after):
        return figures({"sft": wrong, "final": after}, defaults, new_entry, "writer_gpu", seed)

    first = seeds.beside_other_seeds(of(0, right), (), "writer-gpu", new_entry)
    both = seeds.beside_other_seeds(of(2, wrong), first.entries, "writer-gpu", new_entry)
    figure = {entry.id.removeprefix("writer-gpu-"): entry for entry in both.entries}
    assert float(figure["final-right"].value) == 1.0
    assert float(figure["seed-2-final-right"].value) == 0.0
    assert figure["seed-2-final-right"].metric.endswith(", seed 2")
    assert "--seed 2" in figure["seed-2-final-right"].command
    assert float(figure["all-seeds-grpo-accuracy"].value) == 0.5


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"gym": {"unseen": "once"}}, "one run for each value"),
        ({"gym": {"unseen": "unpaid"}, "seed": 1}, "the runs once and unpaid differ in seed"),
    ],
)
def test_arms_differ_in_what_is_paid_alone(other, message):
    first = {"gym": {"unseen": "once", "workers": 2}, "seed": 0, "out": "a"}
    assert writer_arms.arms_of([first, {**first, "gym": {"unseen": "unpaid"}}])
    with pytest.raises(InputError, match=message):
        writer_arms.arms_of([first, {**first, **other}])


def test_the_page_has_the_stored_arms():
    text = (ROOT / writer_arms.PAGE).read_text(encoding="utf-8")
    stored = load_benchmarks(ROOT / "benchmarks/results").subjects[writer_arms.SUBJECT]
    assert writer_arms.arms_page(text, stored) == text, f"run: {writer_arms.COMMAND}"


def test_samples_are_drawn_by_a_seed():
    rows = [reply(TASKS[0], Outcome.PASSED, Stage.DONE, 1.0 + n) for n in range(9)]
    page = samples_page(rows, "after GRPO", 2)
    assert page == samples_page(rows, "after GRPO", 2)
    assert page.count("```text") == 2
    assert f"h{len(graph_of(TASKS[0]).steps)} = " in page
