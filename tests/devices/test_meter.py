"""The meter of a request: work and sleep are charged, waits for a busy machine are not."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from kernel_gym.devices import meter as module
from kernel_gym.devices.budget import HostBudget, Spent
from kernel_gym.devices.meter import Clocks, MachineOverloaded, Meter
from kernel_gym.sandbox.channel import ChannelTimeout
from kernel_gym.sandbox.processor_times import descendants


@pytest.fixture
def clocks(monkeypatch):
    """Clocks that a test sets. A wait until the next look takes no time."""
    readings = []
    monkeypatch.setattr(Meter, "_read", lambda self: readings.pop(0))
    monkeypatch.setattr(module.time, "monotonic", lambda: readings[0].wall if readings else 1e9)
    return readings


def spent(clocks, *steps, budget=None, limit=1e9):
    """Returns what a meter says after steps of wall, worked, simulated, waited and late seconds."""
    sums = [0.0] * 5
    clocks.append(Clocks(*sums))
    for step in ((*step, 0.0, 0.0)[:5] for step in steps):
        sums = [a + b for a, b in zip(sums, step, strict=True)]
        clocks.append(Clocks(*sums))
    one = Meter(1, 2, limit, budget)
    for _ in steps:
        one.patience()
    return one.spent


def test_work_is_charged(clocks):
    assert spent(clocks, (4, 3, 1, 0)) == Spent(host=3, simulated=1, wall=4)


def test_a_meter_without_a_host_process_reads_the_device_alone(monkeypatch):
    read = []
    monkeypatch.setattr(module, "descendants", lambda pid: read.append(pid) or [pid])
    monkeypatch.setattr(module, "processor_seconds", lambda pid, children=False: 0.0)
    for host in (None, 7):
        Meter(host, 8, 1e9, None)
    assert read == [7]


def test_sleep_is_charged_look_by_look(clocks):
    assert spent(clocks, *[(0.25, 0, 0, 0)] * 8).host == 2


def test_waits_for_a_processor_are_not_charged(clocks):
    assert spent(clocks, *[(0.25, 0.05, 0, 0.2)] * 8).host == pytest.approx(0.4)


def test_a_wait_that_shows_late_is_given_back(clocks):
    unseen = [(0.25, 0, 0, 0)] * 4
    assert spent(clocks, *unseen, (0.25, 0.01, 0, 1.24, 0.99)).host == pytest.approx(0.02)


def test_no_more_is_given_back_than_was_charged(clocks):
    assert spent(clocks, (4, 3, 0, 1), (0.25, 0.1, 0, 5, 4.75)).host == pytest.approx(3.1)


def test_the_longest_wait_of_one_process_tells_what_is_late(monkeypatch):
    """Waits of several processes at a time are no longer than the step."""
    waits, now = {1: 5.0, 2: 0.0, "thread-self": 0.0}, [0.0]
    monkeypatch.setattr(module, "descendants", lambda pid: [1])
    monkeypatch.setattr(module, "waited_seconds", waits.__getitem__)
    monkeypatch.setattr(module, "processor_seconds", lambda pid, children=False: 0.0)
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    meter = Meter(1, 2, 1e9, None)
    now[0] = 0.25
    waits |= {1: 5.25, 2: 0.25}
    assert meter._read().late == 0.0
    meter._look()
    assert meter.spent.host == 0.0
    for now[0] in (0.5, 0.75, 1.0):  # process 1 waits, which no clock shows yet
        meter._look()
    assert meter.spent.host == 0.75
    now[0] = 1.25
    waits[1] += 1.0
    meter._look()
    assert meter.spent.host == 0.0


def test_a_machine_that_stands_still_ends_no_candidate(clocks):
    assert spent(clocks, (200, 0, 0, 0)).host == module.LOOK_SECONDS


def test_work_of_many_threads_is_charged_though_the_first_one_waits(clocks):
    assert spent(clocks, (10, 20, 0, 9)).host == 20


@pytest.mark.parametrize("step", [(5, 5, 0, 0), (5, 0, 5, 0)])
def test_a_limit_of_the_candidate_ends_the_wait(clocks, step):
    with pytest.raises(ChannelTimeout):
        spent(clocks, step, budget=HostBudget(host=4, simulated=4, wall=1e9))


def test_the_wall_time_names_the_machine(clocks):
    with pytest.raises(MachineOverloaded, match=r"overloaded: in 20 s .* a processor for 3 s"):
        spent(clocks, (20, 2, 1, 17), budget=HostBudget(wall=15))


def test_descendants_belong_to_a_process():
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as parent:
        while len(descendants(parent.pid)) < 2:
            threading.Event().wait(0.01)
        parent.communicate(b"\n")
    assert descendants(parent.pid) == [parent.pid]
