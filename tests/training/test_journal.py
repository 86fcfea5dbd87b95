"""The journal of an interrupted run: its content, and what a resumed run adds."""

import json

import pytest

from kernel_gym.training.journal import METRICS, Journal, progress


def steps(folder):
    lines = (folder / METRICS).read_text().splitlines()
    return [(line["phase"], line["step"], line["loss"]) for line in map(json.loads, lines)]


def log(folder, *entries):
    journal = Journal(folder)
    for phase, step, loss in entries:
        journal.log(phase, step, {"loss": loss})
    return journal


def test_a_line_that_a_crash_cut_off_takes_no_other_with_it(tmp_path):
    log(tmp_path, ("sft", 1, 3.0)).close()
    with (tmp_path / METRICS).open("a") as metrics:
        metrics.write('{"phase": "sft", "st')
    log(tmp_path, ("sft", 2, 2.0)).close()
    assert steps(tmp_path) == [("sft", 1, 3.0), ("sft", 2, 2.0)]


def test_a_resumed_run_forgets_the_steps_that_it_takes_again(tmp_path):
    journal = log(tmp_path, ("sft", 9, 3.0), ("grpo", 1, 2.0), ("grpo", 2, 1.0), ("assess", 2, 1.0))
    journal.rewind(1)
    journal.log("grpo", 2, {"loss": 1.5})
    journal.close()
    assert steps(tmp_path) == [("sft", 9, 3.0), ("grpo", 1, 2.0), ("grpo", 2, 1.5)]


def test_a_line_says_how_far_the_phase_is_and_none_is_empty(tmp_path):
    logged = []
    journal = Journal(tmp_path, logged.append)
    journal.log("grpo", 12, {"loss": 0.5, "gym/reward": 0.25}, " of 60, 3 min left")
    journal.log("grpo", 60, {"train_runtime": 100.0})
    journal.close()
    assert logged == ["grpo 12 of 60, 3 min left: loss 0.5, reward 0.25"]
    assert len((tmp_path / METRICS).read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("first", "step", "steps", "seconds", "logged"),
    [
        (0, 1, 60, 2.0, " of 60, 2 min left"),
        (36, 48, 60, 12.0, " of 60, 12 s left"),
        (0, 60, 60, 100.0, " of 60"),
        (60, 60, 60, 0.0, " of 60"),
    ],
)
def test_the_rest_takes_as_long_as_the_steps_since_it_was_resumed(
    first, step, steps, seconds, logged
):
    assert progress(first, step, steps, seconds) == logged
