"""The watch over the memory of families of processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel_gym.sandbox.watch import MAX_PERIOD_SECONDS, PERIOD, Watch, held, held_exactly

HOLDS = """
import mmap, os, sys, time
from kernel_gym.sandbox import confine
kind, size = sys.argv[1], int(sys.argv[2])
confine.die_with_parent()
if kind == "children":
    for _ in range(4):
        if os.fork() == 0:
            confine.die_with_parent()
            block = b"x" * (size // 4)
            time.sleep(60)
elif kind == "file":
    file = os.memfd_create("x")
    os.write(file, b"x" * size)
elif kind == "shared":
    block = mmap.mmap(-1, size)
    block.write(b"x" * size)
else:
    block = b"x" * size
print("ready", flush=True)
time.sleep(60)
"""
SIZE = 64 << 20


@pytest.fixture(params=["itself", "children", "file", "shared"])
def holder(request):
    """A process that holds so many bytes, in one way or another."""
    command = [sys.executable, "-c", HOLDS, request.param, str(SIZE)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout.read(5) == b"ready"
    yield process.pid
    for pid in _family(process.pid):
        subprocess.run(["kill", "-9", str(pid)], check=False)
    process.wait()


def _family(pid):
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [*map(int, text.split()), pid]


def _until(test):
    """Children write their blocks while their parent is ready already."""
    end = time.monotonic() + 60
    while not (passed := test()) and time.monotonic() < end:
        pass
    return passed


def test_whatever_holds_memory_is_counted(holder):
    assert _until(lambda: held([holder]) >= SIZE)
    assert _until(lambda: held_exactly([holder]) >= SIZE)
    assert held_exactly([holder]) < SIZE + (48 << 20)  # the interpreter


def test_a_family_that_holds_too_much_is_ended_once(holder):
    watch = Watch()
    watch.add(holder, "a", SIZE)
    assert watch.wait is not None
    assert _until(lambda: watch.overrun() == [holder])
    assert watch.wait is None
    assert "GiB of host memory" in watch.forget(holder)
    assert watch.forget(holder) == ""


def test_a_family_within_its_budget_is_left_alone(holder):
    watch = Watch()
    watch.add(holder, "a", 1 << 40)
    assert watch.overrun() == []
    assert watch.forget(holder) == ""
    assert watch.wait is None


def test_a_family_near_its_budget_is_measured_more_often(holder, monkeypatch):
    assert _until(lambda: held([holder]) >= SIZE)
    monkeypatch.setattr(time, "monotonic", lambda: 1.0)
    far, near = Watch(), Watch()
    far.add(holder, "a", 1 << 40)
    near.add(holder, "a", held([holder]) + (16 << 20))
    assert far.wait == near.wait == 0
    assert far.overrun() == near.overrun() == []
    assert near.wait == pytest.approx(PERIOD)
    assert far.wait == pytest.approx(MAX_PERIOD_SECONDS)


def test_a_new_member_is_measured_at_once(holder, monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 1.0)
    watch = Watch()
    watch.add(holder, "a", 1 << 40)
    watch.overrun()
    watch.add(holder, "b", 1 << 40)
    assert watch.wait == 0


def test_what_is_gone_holds_nothing():
    assert held([1 << 30]) == held_exactly([1 << 30]) == 0
