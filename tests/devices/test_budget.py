"""The time budget of a candidate: what counts, and that it ends before the pool's deadline."""

from __future__ import annotations

import os
import signal

import pytest
import torch

from kernel_gym.devices import budget
from kernel_gym.devices.base import Failed, FailureKind
from kernel_gym.devices.budget import HostBudget, Spent
from kernel_gym.devices.sim.device import SimDevice
from kernel_gym.evaluator import Evaluator
from kernel_gym.executors import make_executor
from kernel_gym.executors.supervised import DEADLINE
from kernel_gym.judge.protocol import RETRIES
from kernel_gym.records import Outcome
from kernel_gym.sandbox.processor_times import processor_seconds
from kernel_gym.tasks import get_task

TASK = "triton2triton/softmax"
INPUTS = {"x": torch.zeros(4)}
SLEEPS = "import time\n{at_load}\ndef softmax(x):\n    time.sleep({call})\n    return x\n"


def test_host_time_and_the_time_of_the_simulated_gpu_have_limits_of_their_own():
    one = HostBudget(host=10, simulated=10, wall=100)
    one.draw(Spent(host=4, simulated=8, wall=90))
    assert not one.used_up
    assert not one.reached(Spent(host=5, simulated=1))
    assert one.reached(Spent(host=6))
    assert one.reached(Spent(simulated=2))
    one.draw(Spent(host=6))
    assert one.used_up
    assert "host time" in one.overrun
    other = HostBudget(host=10, simulated=10, wall=100)
    other.draw(Spent(simulated=10))
    assert "processor" in other.overrun


def test_the_wall_time_is_a_limit_on_a_gpu_only():
    one = HostBudget(host=10, simulated=10, wall=20)
    one.draw(Spent(wall=21))
    assert not one.used_up
    assert one.draw_wall(1)
    assert "240 s" in one.overrun


def test_host_code_has_less_time_while_others_wait_for_the_gpu():
    one, slow = HostBudget(), HostBudget(wall=5)
    for candidate in (one, slow):
        candidate.hold_gpu()
        candidate.hold_gpu()
    assert (one.wall, slow.wall) == (budget.MAX_HELD_SECONDS, 5)
    assert not one.draw_wall(budget.MAX_HELD_SECONDS - 1)
    one.hold_gpu()
    assert one.draw_wall(1)
    assert "60 s with the GPU" in one.overrun


def test_processor_time_is_read_of_this_process_and_of_none():
    start = processor_seconds(os.getpid())
    while processor_seconds(os.getpid()) <= start:
        sum(range(10_000))
    assert processor_seconds(1 << 30) == 0


def test_two_tries_end_before_a_pool_gives_up():
    """The judge's own work, some ten seconds on a busy machine, has the rest."""
    assert RETRIES.seconds + budget.GUARD_SECONDS <= DEADLINE - 200
    assert 2 * budget.GUARD_SECONDS <= DEADLINE - 200
    assert budget.WALL_SECONDS < budget.GUARD_SECONDS


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(HostBudget.__init__, "__defaults__", (1.0, 45.0, 240.0))


@pytest.mark.parametrize(
    "times",
    [
        {"at_load": "time.sleep(5)", "call": 0},
        {"at_load": "time.sleep(0.7)", "call": 0.4},
        {"at_load": "", "call": 5},
    ],
)
def test_loads_and_calls_draw_from_one_budget(short, times):
    session = SimDevice().open(get_task(TASK))
    try:
        failed = session.load(SLEEPS.format(**times)) or session.call(INPUTS, {})
        again = session.call(INPUTS, {})
    finally:
        session.close()
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.TIMEOUT
    assert "has used up its" in failed.message
    assert again == failed or again.kind is FailureKind.TIMEOUT


def test_a_candidate_that_runs_out_of_seconds_frees_the_pool(short):
    with make_executor("local", device="sim:gfx942", workers=1, seed=0) as pool:
        late = pool.submit(TASK, SLEEPS.format(at_load="", call=30))
        other = pool.submit(TASK, "def softmax(x): return x")
        assert late.result().outcome is Outcome.TIMEOUT
        assert other.result().outcome is not Outcome.INFRA
        assert pool.replaced == 0


def test_a_simulated_gpu_that_is_lost_in_a_call_twice_is_the_candidates_failure():
    task = get_task(TASK)
    tries = []

    class Counting(SimDevice):
        def open(self, *args, **options):
            session = super().open(*args, **options)
            place = session._place_inputs

            def lose(inputs):
                placed = place(inputs)
                tries.append(os.kill(session._device.pid, signal.SIGKILL))
                return placed

            session._place_inputs = lose
            return session

    with Evaluator(device="sim:gfx942", seed=0) as evaluator:
        evaluator.device = Counting()
        result = evaluator.evaluate(task, task.kernel_source)
    assert result.outcome is Outcome.RUNTIME_ERROR
    assert "in each of 2 tries: the simulated device failed" in result.message
    assert len(tries) == 2


def test_seconds_that_are_granted_count_in_the_limit_and_in_its_name():
    budget = HostBudget()
    budget.grant(60.0)
    budget.draw(Spent(host=99.0))
    assert not budget.used_up
    budget.draw(Spent(host=2.0))
    assert "100 s of host time" in budget.overrun
