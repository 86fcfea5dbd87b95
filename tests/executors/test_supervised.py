"""The supervisor of workers: late starts, failed starts, a pool that is lost, and its own faults.

The workers here answer with a record made by hand, when a test lets them start.
"""

from concurrent.futures import Future
from queue import SimpleQueue

import pytest

from kernel_gym.executors import supervised
from kernel_gym.executors.supervised import ExecutorLost, SupervisedExecutor
from kernel_gym.executors.supervised_worker import at_once
from kernel_gym.records import Outcome
from tests.records import passing

TASK = "triton2triton/softmax"
ANSWER = passing(2.0, 2.0)


class Hand:
    """A worker that starts when a test says so, and answers at once."""

    def __init__(self, ready):
        self.ready, self.evaluated, self.killed = ready, 0, False

    def start(self, request):
        assert self.ready.done(), "an evaluation was given to a worker that has not started"
        self.evaluated += 1
        future = Future()
        future.set_result(ANSWER)
        return future

    def close(self):
        pass

    def kill(self):
        self.killed = True


class Hands(SupervisedExecutor):
    """Makes such workers; the first ones start late."""

    def __init__(self, late=0, **arguments):
        self.late, self.made, self.lost = late, SimpleQueue(), ""
        super().__init__("sim:gfx942", **arguments)

    def _make_worker(self):
        self.late -= 1
        worker = Hand(Future() if self.late >= 0 else at_once())
        self.made.put(worker)
        return worker

    def _waits_for(self):
        if self.lost:
            raise ExecutorLost(self.lost)
        return "a test"


def test_a_worker_that_does_not_start_holds_up_no_evaluation():
    with Hands(late=1, workers=2) as executor:
        futures = [executor.submit(TASK, f"x{n}") for n in range(8)]
        assert [future.result() for future in futures] == [ANSWER] * 8
        late, other = executor.made.get(), executor.made.get()
    assert (late.evaluated, late.killed) == (0, True)
    assert other.evaluated == 8


def test_a_worker_that_starts_late_is_used_then():
    with Hands(late=1, workers=1) as executor:
        future = executor.submit(TASK, "x")
        worker = executor.made.get()
        worker.ready.set_result(None)
        assert future.result() == ANSWER
        assert worker.evaluated == 1


def test_a_worker_that_cannot_start_is_replaced():
    with Hands(late=1, workers=1) as executor:
        future = executor.submit(TASK, "x")
        executor.made.get().ready.set_exception(OSError("no place"))
        assert future.result() == ANSWER
        assert executor.replaced == 1


def test_without_a_start_within_the_deadline_the_reason_is_told():
    with Hands(late=1, workers=1, deadline=0.05) as executor:
        evaluation = executor.evaluate(TASK, "x")
        assert evaluation.outcome is Outcome.INFRA
        assert evaluation.message == "no worker started within 0.05 s: a test"
        assert executor.evaluate(TASK, "y") == ANSWER


def test_a_pool_that_can_start_no_worker_any_more_ends_its_evaluations(monkeypatch, caplog):
    monkeypatch.setattr(supervised, "NOTICE_SECONDS", 0.0)
    executor = Hands(late=2, workers=2)
    futures = [executor.submit(TASK, f"x{n}") for n in range(3)]
    executor.lost = "no node is left"
    for future in futures:
        with pytest.raises(ExecutorLost, match="no node is left"):
            future.result()
    assert executor.trouble == "no node is left"
    with pytest.raises(RuntimeError, match="no node is left"):
        executor.submit(TASK, "y")
    executor.close()


def test_a_fault_of_the_supervisor_is_told_and_hangs_nobody(caplog):
    class Faulty(Hands):
        def _finish(self, run):
            raise ZeroDivisionError("a fault")

    executor = Faulty(workers=1)
    with pytest.raises((ZeroDivisionError, RuntimeError), match="a fault"):
        executor.evaluate(TASK, "x")
    assert "ZeroDivisionError" in caplog.text
    assert executor.trouble == "a fault"
    executor.close()
