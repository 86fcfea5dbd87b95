"""The example candidates: complete, each with a heading and the entry of its task."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from kernel_gym.tasks import c_prototype, load_suite

CANDIDATES = Path(__file__).parents[2] / "examples" / "candidates"
TASKS = load_suite("quickstart").tasks
STEMS = {"1_wrong": "Wrong:", "2_shape_bound": "Shape-bound:", "3_good": "Good:"}


@pytest.mark.parametrize("task", TASKS, ids=str)
@pytest.mark.parametrize(("stem", "heading"), STEMS.items(), ids=STEMS)
def test_each_task_has_three_candidates_with_its_entry(task, stem, heading):
    suffix = ".hip" if task.language == "hip" else ".py"
    source = (CANDIDATES / task.id / f"{stem}{suffix}").read_text(encoding="utf-8")
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
