"""The example candidates: complete, each with a heading and the entry of its task."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Outcome
from kernel_gym.storage.secret import PUBLIC
from kernel_gym.tasks import c_prototype, load_suite

CANDIDATES = Path(__file__).parents[2] / "examples" / "candidates"
TASKS = load_suite("quickstart").tasks
WINS = 1.1
"""Least speedup of the good kernel of each task: the rule of the suite."""
STEMS = {"1_wrong": "Wrong:", "2_shape_bound": "Shape-bound:", "3_good": "Good:"}


def _source(task, stem):
    suffix = ".hip" if task.language == "hip" else ".py"
    return (CANDIDATES / task.id / f"{stem}{suffix}").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(device="sim:gfx942", seed=0, secret=PUBLIC) as made:
        yield made


@pytest.mark.parametrize(
    "task",
    [
        pytest.param(t, id=str(t), marks=[] if t.baseline == "torch" else [pytest.mark.sweep])
        for t in TASKS
    ],
)
def test_a_good_kernel_wins_each_task(evaluator, task):
    """In each run those whose baseline is timed by a formula: PyTorch's. The others are a sweep."""
    evaluation = evaluator.evaluate(task, _source(task, "3_good"))
    assert evaluation.outcome is Outcome.PASSED, evaluation.message
    assert min(evaluation.speedup, evaluation.unseen_speedup) >= WINS


@pytest.mark.parametrize("task", TASKS, ids=str)
@pytest.mark.parametrize(("stem", "heading"), STEMS.items(), ids=STEMS)
def test_each_task_has_three_candidates_with_its_entry(task, stem, heading):
    source = _source(task, stem)
    assert source.lstrip('/" ').startswith(heading)
    if task.language == "hip":
        assert c_prototype(task.problem) in " ".join(source.split())
        assert "__global__" in source
        return
    tree = ast.parse(source)
    entries = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == task.entry]
    assert len(entries) == 1
    assert [a.arg for a in entries[0].args.args] == [arg.name for arg in task.problem.args]
    assert re.search(r"@triton\.jit", source)


def test_no_candidate_is_without_a_task():
    expected = {f"{task.id}/{stem}" for task in TASKS for stem in STEMS}
    present = {
        str(path.relative_to(CANDIDATES).with_suffix(""))
        for path in CANDIDATES.rglob("*")
        if path.suffix in (".py", ".hip")
    }
    assert present == expected


def test_the_three_candidates_of_a_task_differ():
    for task in TASKS:
        texts = {path.read_text() for path in (CANDIDATES / task.id).iterdir()}
        assert len(texts) == 3, task.id
