"""Stopping a worker's processes while the other side is timed."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from kernel_gym.sandbox import pause
from kernel_gym.sandbox.pause import NotStoppedError, WorkerProcesses, children_of

BUSY = """
import os, sys
from kernel_gym.sandbox import confine
for _ in range(int(sys.argv[1])):
    if os.fork():
        break
confine.die_with_parent()  # else it would outlive a test run that is killed
print(flush=True)
while True:
    pass
"""


def _state(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def _family(pid):
    return [pid, *(p for child in children_of(pid) for p in _family(child))]


@pytest.fixture
def started():
    """A chain of three processes that never wait for anything."""
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY, "2"], stdout=subprocess.PIPE, start_new_session=True
    )
    for _ in range(3):
        process.stdout.readline()
    yield process
    for pid in _family(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def test_a_process_stops_with_its_descendants_and_goes_on(started):
    pause_ = WorkerProcesses(started.pid)
    assert pause_.stop_all()
    family = _family(started.pid)
    assert len(family) == 3
    assert {_state(pid) for pid in family} == {"T"}
    assert not pause_.stop_all()  # nothing new
    pause_.resume()
    assert "T" not in {_state(pid) for pid in family}


def test_processes_that_are_known_stop_without_a_search(started):
    pause_ = WorkerProcesses(started.pid)
    pause_.stop_all()
    pause_.resume()
    pause_.stop_known()
    assert not pause_.stop_all()


def test_a_process_without_its_parent_is_stopped_when_it_is_named(started):
    with subprocess.Popen([sys.executable, "-c", BUSY, "0"]) as stray:
        pause_ = WorkerProcesses(started.pid)
        pause_.stop_all([stray.pid])
        assert _state(stray.pid) == "T"
        stray.kill()


def test_a_process_that_has_ended_is_no_error(started):
    started.kill()
    started.wait()
    pause_ = WorkerProcesses(started.pid)
    assert not pause_.stop_all()
    pause_.resume()


def test_a_process_that_goes_on_is_noticed(started, monkeypatch):
    monkeypatch.setattr(pause, "_send", lambda pid, number: None)
    monkeypatch.setattr(pause, "LIMIT", 0.05)
    with pytest.raises(NotStoppedError):
        WorkerProcesses(started.pid).stop_all()
