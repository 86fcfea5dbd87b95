"""Stops a process with all of its descendants, and resumes them.

While one side of a comparison is timed, no process of the other side may run. A stopped process
cannot start another one. So each process is stopped before its children are listed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable

LIMIT = 5.0
"""Seconds within which a process must have stopped. A process in a system call stops at its end."""
READ_BYTES = 1 << 16
STOPPED = "TtZX"
"""States in /proc of threads that do not run: stopped, traced, ended."""


class NotStoppedError(RuntimeError):
    """A process continues to run after SIGSTOP."""


class WorkerProcesses:
    """The processes of one worker.

    Args:
        pid: The first of them.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._known: dict[int, None] = {pid: None}

    def stop_known(self) -> None:
        """Sends SIGSTOP to the known processes; takes microseconds and does not wait."""
        for pid in self._known:
            _send(pid, signal.SIGSTOP)

    def stop_all(self, strays: Iterable[int] = ()) -> bool:
        """Stops every process and waits until none of their threads runs.

        Args:
            strays: Processes of the worker whose parent has ended.

        Returns:
            Whether there was a process that `stop_known` did not know.

        Raises:
            NotStoppedError: A process does not stop.
        """
        before, waiting = self._known, [self._pid, *strays]
        self._known = {}
        end = time.monotonic() + LIMIT
        while waiting:
            pid = waiting.pop()
            if pid in self._known:
                continue
            self._known[pid] = None
            _send(pid, signal.SIGSTOP)
            _wait_until_stopped(pid, end)
            waiting += children_of(pid)
        return any(pid not in before for pid in self._known)

    def resume(self) -> None:
        """Resumes all processes."""
        for pid in reversed(self._known):
            _send(pid, signal.SIGCONT)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _wait_until_stopped(pid: int, end: float) -> None:
    while any(state not in STOPPED for state in _states(pid)):
        if time.monotonic() > end:
            raise NotStoppedError(f"a process of the worker did not stop within {LIMIT:.0f} s")


def _states(pid: int) -> Iterable[str]:
    """The states of the threads of a process; none when it is gone."""
    for task in _tasks(pid):
        stat = _read(f"{task}/stat")
        if stat:
            yield stat.rpartition(")")[2].split(None, 1)[0]


def children_of(pid: int) -> list[int]:
    """The child processes of a process."""
    return [int(child) for task in _tasks(pid) for child in _read(f"{task}/children").split()]


def _tasks(pid: int) -> list[str]:
    folder = f"/proc/{pid}/task"
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    except OSError:
        return []


def _read(path: str) -> str:
    """Reads a short file of /proc; empty when it is gone. Twice as fast as a file object."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(descriptor, READ_BYTES).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
