"""What a run comes to."""

import pytest

from kernel_gym.records import Clock, Outcome, Stage
from kernel_gym.store import RunStore
from kernel_gym.summary import summarise
from tests.records import failure, passing
from tests.test_store import CONFIG, TASKS, record


def test_the_best_submission_counts(tmp_path):
    store = RunStore.start(tmp_path, CONFIG)
    store.append(record(TASKS[0], 1, passing(4.0, 4.0)), "a")
    store.append(record(TASKS[0], 2, passing(2.0, 2.0)), "b")
    store.append(record(TASKS[1], 1, failure(Outcome.WRONG_VALUES, Stage.TRAIN)), "c")
    summary = summarise(store)
    assert (summary.submissions, summary.solved) == (3, 1)
    assert summary.speedup == pytest.approx(4.0)
    assert summary.clock is Clock.MODELLED
    first, second = summary.tasks
    assert (first.best_turn, first.outcomes) == (1, ("passed", "passed"))
    assert (second.best_turn, second.speedup, second.reward) == (None, None, 0.05)


def test_an_empty_run_has_a_summary(tmp_path):
    summary = summarise(RunStore.start(tmp_path, CONFIG))
    assert (summary.solved, summary.speedup, summary.mean_reward) == (0, None, None)


def test_masked_turns_earn_nothing(tmp_path):
    store = RunStore.start(tmp_path, CONFIG)
    store.append(record(TASKS[0], 1, failure(Outcome.INFRA, Stage.BUILD)), "a")
    assert summarise(store).tasks[0].reward is None
