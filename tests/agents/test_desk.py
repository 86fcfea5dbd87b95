"""The desk: budget, repeated sources, what an agent may send, and the verdict."""

import threading

import pytest

from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import get_task
from tests.agents.conftest import TASK

GOOD = get_task(TASK).start_source


def test_a_source_costs_one_submission_however_often_it_is_sent(make_desk):
    desk = make_desk(2)
    first, again = desk.submit("x("), desk.submit("x(")
    assert first == again
    assert (first["outcome"], first["left"], first["passed"]) == ("compile_error", 1, False)
    assert desk.submit("y(")["left"] == 0
    refused = desk.submit("z(")
    assert "the budget is used up: 2 of 2 submissions" in refused["error"]
    assert desk.submit("x(")["outcome"] == "compile_error"


def test_many_threads_do_not_exceed_the_budget(make_desk, tmp_path):
    desk = make_desk(3)
    answers = []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(desk.submit(f"x{n}(")))
        for n in range(200)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(answer["error"] == "" for answer in answers) == 3
    assert len(RunStore(tmp_path / "run").records()) == 3


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (None, "NoneType"),
        (7, "int"),
        (["x"], "list"),
        ("\ud800", "surrogate"),
        ("x" * 262145, "by"),
    ],
)
def test_what_is_no_source_costs_nothing(make_desk, source, error):
    desk = make_desk()
    answer = desk.submit(source)
    assert error in answer["error"]
    assert answer["left"] == 3


def test_the_verdict_is_a_further_evaluation_with_other_draws(make_desk, tmp_path):
    desk = make_desk(2)
    answer = desk.submit(GOOD)
    assert answer["passed"]
    assert answer["profile"]["kernels"][0]["bound_by"]
    evaluation = desk.verdict(GOOD)
    assert str(evaluation.outcome) == "passed"
    first, last = RunStore(tmp_path / "run").records()
    assert first.evaluation.seed != last.evaluation.seed == evaluation.seed
    assert RunStore(tmp_path / "run").is_over(TASK)
    assert "the episode is over" in desk.submit("new(")["error"]


def test_an_episode_without_a_file_ends_with_the_reason(make_desk, tmp_path):
    desk = make_desk()
    assert desk.verdict(None, "kernel.py is missing") is None
    (end,) = RunStore(tmp_path / "run").ends()
    assert end.reason == "kernel.py is missing"


def test_a_desk_continues_with_what_is_recorded(make_desk):
    make_desk(2).submit("x(")
    desk = make_desk(2)
    assert desk.left == 1
    assert desk.submit("x(")["left"] == 1


def test_the_profile_of_a_known_source_is_free(make_desk):
    desk = make_desk(1)
    submitted = desk.submit(GOOD)
    profile = desk.profile(GOOD)
    assert profile["profile"] == submitted["profile"]
    assert profile["left"] == 0
    hottest = profile["profile"]["kernels"][0]["hottest"]
    assert hottest[0]["line"].startswith("candidate.py:")
    assert sum(entry["share"] for entry in hottest) <= 1.0
    assert {tuple(row) for row in profile["profile"]["roofline"]} == {
        ("dims", "seconds", "roofline_seconds", "share")
    }
    assert desk.best()["source"] == GOOD
