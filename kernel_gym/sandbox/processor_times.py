"""Processor seconds of the template's children, by role: those that live and those that ended."""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict

TEMPLATE = "template"
_TICKS = os.sysconf("SC_CLK_TCK")


class ProcessorTimes:
    """Adds up user and system seconds of children with all that they started.

    A child that ended counts as the kernel has counted it. One that lives counts as `/proc` shows
    it, in hundredths of a second. What a child leaves behind counts for the child that ended last.
    """

    def __init__(self) -> None:
        self._roles: dict[int, str] = {}
        self._ended: dict[str, float] = defaultdict(float)
        self._last = TEMPLATE

    def add(self, pid: int, role: str) -> None:
        """Begins to count a child."""
        self._roles[pid] = role

    def ended(self, pid: int, seconds: float) -> None:
        """Counts a process that has ended and whose parent was the template."""
        self._last = self._roles.pop(pid, self._last)
        self._ended[self._last] += seconds

    def read(self) -> dict[str, float]:
        """Returns the seconds of each role so far, and of the template itself."""
        seconds = defaultdict(float, self._ended)
        for pid, role in self._roles.items():
            seconds[role] += sum(processor_seconds(p, children=True) for p in descendants(pid))
        seconds[TEMPLATE] += time.process_time()
        return dict(seconds)


def descendants(pid: int) -> list[int]:
    """Returns a process and its descendants, as far as they live."""
    processes = [pid]
    for parent in processes:  # grows meanwhile
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):
                processes += map(int, read_proc(f"{parent}/task/{thread}/children").split())
    return processes


def processor_seconds(pid: int, children: bool = False) -> float:
    """Returns the CPU time of a process in seconds; 0 if it has ended.

    Args:
        pid: The process.
        children: Add the CPU time of its children that have ended.
    """
    fields = read_proc(f"{pid}/stat").rpartition(b")")[2].split()
    return sum(map(int, fields[11 : 15 if children else 13])) / _TICKS


def read_proc(name: str) -> bytes:
    """Returns the content of a file of /proc; nothing if it cannot be read.

    Judges read some of them before and after each request, so this takes the shortest way.
    """
    try:
        file = os.open(f"/proc/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, 1 << 16)
    except OSError:
        return b""
    finally:
        os.close(file)
