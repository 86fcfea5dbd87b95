"""Shares of the correctness of several runs that are known by hand."""

from __future__ import annotations

import itertools

import pytest
from typer.testing import CliRunner

from kernel_gym.analysis.decomposition import decompose
from kernel_gym.cli import app
from kernel_gym.records import Outcome, Stage
from kernel_gym.storage.run_store import StoreError
from kernel_gym.tasks import get_task, task_ids
from tests.analysis.test_metrics import make
from tests.records import failure, passing

WRONG = failure(Outcome.WRONG_VALUES, Stage.TRAIN)


@pytest.fixture(scope="module")
def categories():
    """Two categories with six tasks each."""
    named = sorted(
        (get_task(name).problem.category, name)
        for name in task_ids()
        if name.startswith("triton2triton/")
    )
    groups = [[name for _, name in group] for _, group in itertools.groupby(named, lambda x: x[0])]
    first, second = [group for group in groups if len(group) >= 6][:2]
    return first[:6], second[:6]


def runs(folder, categories, right):
    """Makes a run for each row of `right`, which has a value for each category."""
    made = []
    for number, row in enumerate(right):
        played = {
            (task, 1): [passing(2.0, 1.0) if solved else WRONG]
            for tasks, solved in zip(categories, row, strict=True)
            for task in tasks
        }
        made.append(make(folder / str(number), played))
    return made


def test_a_category_that_decides_everything_explains_everything(tmp_path, categories):
    shares = decompose(runs(tmp_path, categories, [(True, False)] * 3))
    assert len(shares.tasks) == 12
    assert shares.category.explained == pytest.approx(1)
    assert shares.category.p_value < 0.02
    assert shares.run.explained == pytest.approx(0)
    assert shares.run.p_value == 1


def test_a_run_that_decides_everything_explains_everything(tmp_path, categories):
    shares = decompose(runs(tmp_path, categories, [(True, True), (False, False), (True, True)]))
    assert shares.run.explained == pytest.approx(1)
    assert shares.run.p_value < 0.001, "runs change places within each task"
    assert shares.category.explained == pytest.approx(0)


def test_runs_without_a_common_task_are_refused(tmp_path, categories):
    first, second = (
        make(tmp_path / str(n), {(c[0], 1): [WRONG]}) for n, c in enumerate(categories)
    )
    with pytest.raises(StoreError, match="no task in common"):
        decompose([first, second])


def test_the_command_states_both_shares_for_three_runs(tmp_path, categories):
    runs(tmp_path, categories, [(True, True), (False, True), (False, True)])
    folders = [str(tmp_path / name) for name in "012"]
    printed = CliRunner().invoke(app, ["compare", *folders]).output
    assert "what is right in 3 runs on 12 tasks" in printed
    assert printed.count("% of the deviance") == 2
    assert "of the deviance" not in CliRunner().invoke(app, ["compare", *folders[:2]]).output
