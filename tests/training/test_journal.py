"""The journal of a run that was interrupted: what it holds, and what a resumed run adds."""

import json

from kernel_gym.training.journal import METRICS, Journal


def steps(folder):
    lines = (folder / METRICS).read_text().splitlines()
    return [(found["phase"], found["step"], found["loss"]) for found in map(json.loads, lines)]


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
