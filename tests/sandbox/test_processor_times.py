"""Processor seconds by role: of children that live and of those that have ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from kernel_gym.sandbox.processor_times import (
    TEMPLATE,
    ProcessorTimes,
    descendants,
    processor_seconds,
    read_proc,
)
from kernel_gym.sandbox.spawn import shared_template

SPIN = "import time\nwhile time.process_time() < {}: pass\nprint(flush=True)\ninput()"


def _spinning(seconds):
    child = subprocess.Popen(
        [sys.executable, "-c", SPIN.format(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    child.stdout.readline()
    return child


def test_a_child_counts_while_it_lives_and_when_it_has_ended():
    times = ProcessorTimes()
    with _spinning(0.3) as child:
        times.add(child.pid, "worker")
        assert times.read()["worker"] >= 0.25
        child.stdin.write(b"\n")
        child.stdin.close()
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
    times.ended(child.pid, usage.ru_utime + usage.ru_stime)
    assert times.read()["worker"] == usage.ru_utime + usage.ru_stime >= 0.3


def test_what_a_child_leaves_behind_counts_for_it():
    times = ProcessorTimes()
    times.add(11, "worker")
    times.add(12, "device")
    times.ended(11, 1.0)
    times.ended(999, 0.5)
    assert times.read()["worker"] == 1.5


def test_the_template_tells_its_times():
    before = shared_template().times()
    child = shared_template().fork("compiler", [], {"folders": ["/usr"]})
    child.channel.recv(60)
    child.close()
    after = shared_template().times()
    assert after["compiler"] > before.get("compiler", 0.0)
    assert after[TEMPLATE] >= before[TEMPLATE] > 0


def test_descendants_are_found_and_absent_processes_are_nothing():
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as parent:
        deadline = time.monotonic() + 60
        while len(descendants(parent.pid)) < 2 and time.monotonic() < deadline:
            pass
        assert len(descendants(parent.pid)) == 2
        parent.stdin.write(b"\n")
    assert processor_seconds(1 << 30) == 0
    assert read_proc("no such process") == b""
