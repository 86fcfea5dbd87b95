"""An evaluation on two processors: the same record, and each value is computed once."""

from __future__ import annotations

import threading

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.exploits import SUITE
from kernel_gym.judge.ahead import Ahead
from kernel_gym.judge.expected import Expected, ExpectedCache
from kernel_gym.storage.secret import PUBLIC
from kernel_gym.tasks import Scale, get_task, train_workloads

TASK = get_task("triton2triton/softmax")
WORKLOAD = train_workloads(TASK.problem, Scale.SIM)[0]
WAIT = 60.0
"""Seconds after which a test fails instead of waiting longer."""
BY_COUNT = TASK.baseline_source + (
    "\ninner, count = softmax, [0]\n"
    "def softmax(x):\n"
    "    count[0] += 1\n"
    "    return inner(x) if count[0] < {most} else inner(x.t()).t()\n"
)


def test_work_is_done_in_order_on_another_thread():
    done = []
    ahead = Ahead()
    for number in range(3):
        ahead.add(lambda number=number: done.append((number, threading.current_thread())))
    ahead.finish()
    assert [number for number, _ in done] == [0, 1, 2]
    assert threading.current_thread() not in {thread for _, thread in done}
    ahead.stop()  # a second end has nothing to do


def test_what_has_not_begun_is_left_out_at_the_end():
    begun, may_end, done = threading.Event(), threading.Event(), []
    ahead = Ahead()
    ahead.add(lambda: (begun.set(), may_end.wait(WAIT)))
    ahead.add(lambda: done.append("too late"))
    assert begun.wait(WAIT)
    ending = threading.Thread(target=ahead.stop)
    ending.start()
    while not ahead._stopped.is_set():
        pass
    may_end.set()
    ending.join()
    assert not done


def test_an_exception_ends_the_work_and_nothing_else():
    done = []
    ahead = Ahead()
    ahead.add(lambda: 1 / 0)
    ahead.add(lambda: done.append(1))
    ahead.finish()
    assert not done


def test_two_threads_that_ask_for_one_value_compute_it_once():
    cache, begun, may_end = ExpectedCache(), threading.Event(), threading.Event()
    value, values = Expected({}, (), (), ()), []

    def make():
        begun.set()
        assert may_end.wait(WAIT)
        return value

    def never():
        raise AssertionError("the value is computed twice")

    def ask(make):
        values.append(cache.get(TASK.problem, WORKLOAD, 0, make=make))

    threads = [threading.Thread(target=ask, args=[make]) for make in (make, never)]
    threads[0].start()
    assert begun.wait(WAIT)
    threads[1].start()
    may_end.set()
    for thread in threads:
        thread.join()
    assert values == [value, value]


def test_a_value_that_could_not_be_computed_is_computed_again():
    cache, value = ExpectedCache(), Expected({}, (), (), ())
    with pytest.raises(ZeroDivisionError):
        cache.get(TASK.problem, WORKLOAD, 0, make=lambda: 1 // 0)
    assert cache.get(TASK.problem, WORKLOAD, 0, make=lambda: value) is value


@pytest.fixture(scope="module")
def evaluators():
    with (
        Evaluator("sim:gfx942", seed=4, secret=PUBLIC) as plain,
        Evaluator("sim:gfx942", seed=4, secret=PUBLIC, hurry=True) as hurried,
    ):
        yield plain, hurried


@pytest.mark.parametrize(
    "source",
    [
        TASK.baseline_source,
        TASK.baseline_source.replace("tl.exp(", "tl.exp2("),  # wrong values
        BY_COUNT.format(most=12),  # fails in its second shape
        (SUITE / "e14_read_by_time.py").read_text(),  # a fault while it tunes itself
    ],
)
def test_the_record_of_a_hurried_evaluation_is_the_same(evaluators, source):
    records = [evaluator.evaluate(TASK, source) for evaluator in evaluators]
    plain, hurried = (record.model_copy(update={"wall_seconds": {}}) for record in records)
    assert hurried == plain
