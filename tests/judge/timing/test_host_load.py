"""A comparison that was late is made again when there are processors to spare."""

import os

import pytest

from kernel_gym.judge.timing import host_load as calm

CROWD, FEW = (f"9.00 8.00 7.00 {os.cpu_count() + more}/9999 1\n" for more in (1, 0))


class Clock:
    """A clock that only sleeping moves, and the load that the kernel reports from some time on."""

    def __init__(self, file, says):
        self.now, self.file, self.says = 0.0, file, says
        self.sleep(0.0)

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        for moment, text in self.says.items():
            if self.now >= moment:
                self.file.write_text(text)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    def machine(says):
        clock = Clock(tmp_path / "loadavg", says)
        monkeypatch.setattr(calm, "LOAD", clock.file)
        monkeypatch.setattr(calm, "time", clock)
        return clock

    return machine


def test_processors_to_spare_are_seen_in_a_moment(machine):
    clock = machine({0: FEW})
    assert calm.wait_for_idle_cpus()
    assert calm.CALM <= clock.now < calm.CALM + 2 * calm.STEP


def test_a_crowd_is_waited_for(machine):
    clock = machine({0: CROWD, 1: FEW, 1.05: CROWD, 1.5: FEW})
    assert calm.wait_for_idle_cpus()
    assert 1.5 + calm.CALM - calm.STEP <= clock.now < 1.5 + calm.CALM + 2 * calm.STEP


def test_a_crowd_that_stays_is_not_waited_for_for_ever(machine):
    clock = machine({0: CROWD})
    assert not calm.wait_for_idle_cpus()
    assert calm.LIMIT <= clock.now < calm.LIMIT + 2 * calm.STEP


@pytest.mark.parametrize("says", [{0: ""}, {0: "no such words"}, {}])
def test_a_system_that_does_not_say_is_not_waited_for(machine, says):
    machine(says)
    assert calm.wait_for_idle_cpus()


def test_this_system_says():
    assert calm._runnable() >= 1
