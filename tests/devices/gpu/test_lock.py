"""The lock of a GPU: one holder at a time, over processes, and none when that process has died."""

import subprocess
import sys
import threading

import pytest

from kernel_gym.devices.gpu.lock import GpuLock

HOLD = """
import sys
from kernel_gym.devices.gpu.lock import GpuLock

with GpuLock("gpu").alone():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path, monkeypatch):
    """Another process that holds the lock."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    command = [sys.executable, "-c", HOLD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def _waiter(entered):
    def run():
        with GpuLock("gpu").alone():
            entered.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def test_who_comes_second_waits_until_the_first_process_is_gone(other):
    entered = threading.Event()
    waiter = _waiter(entered)
    assert not entered.wait(0.2)
    other.kill()
    waiter.join(10)
    assert entered.is_set()


def test_gpus_have_locks_of_their_own(other):
    with GpuLock("another gpu").alone():
        assert GpuLock("another gpu").state != GpuLock("gpu").state


def _holder(lock, entered, leave):
    def run():
        with lock:
            entered.set()
            leave.wait(20)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def test_those_who_are_not_timed_share_the_gpu_and_whoever_is_timed_does_not(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    entered, leave = [threading.Event() for _ in range(3)], [threading.Event() for _ in range(3)]
    first = _holder(GpuLock("gpu").shared(), entered[0], leave[0])
    assert entered[0].wait(10)
    with GpuLock("gpu").shared():
        pass  # beside the first
    alone = _holder(GpuLock("gpu").alone(), entered[1], leave[1])
    assert not entered[1].wait(0.2)
    late = _holder(GpuLock("gpu").shared(), entered[2], leave[2])
    assert not entered[2].wait(0.2), "it waits behind the one who wants the GPU alone"
    leave[0].set()
    assert entered[1].wait(10)
    assert not entered[2].is_set()
    leave[1].set()
    assert entered[2].wait(10)
    leave[2].set()
    for thread in (first, alone, late):
        thread.join(10)
