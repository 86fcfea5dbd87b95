"""The memory watch: it ends the processes of a candidate when their sum exceeds their budget.

Limits of the kernel bound single processes. A candidate has several: its worker, the processes that
the worker starts, its compiler, and its simulated GPU. This module measures their sum.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from kernel_gym.sandbox.processor_times import descendants, read_proc

PERIOD = 0.02
"""Least seconds between two measurements. Measuring two processes takes up to a millisecond."""
MAX_PERIOD_SECONDS = 8 * PERIOD
"""Most seconds between two measurements."""
FASTEST_GROWTH = 16 << 30
"""Most bytes of new memory a second. Linux clears 2 to 4 GiB of pages a second on one processor."""
_BLOCK = 512


@dataclass
class _Family:
    memory: int
    pids: set[int] = field(default_factory=set)


class Watch:
    """Families of processes with their budgets, and the processes that exceeded them."""

    def __init__(self) -> None:
        self._families: dict[str, _Family] = {}
        self._ended: dict[int, str] = {}
        self._next = 0.0

    @property
    def wait(self) -> float | None:
        """Seconds until the next measurement; None if there is no process to measure."""
        return max(0.0, self._next - time.monotonic()) if self._families else None

    def add(self, pid: int, name: str, memory: int) -> None:
        """Adds a process and its descendants to a family with a budget of `memory` bytes."""
        self._families.setdefault(name, _Family(memory)).pids.add(pid)
        self._next = 0.0

    def forget(self, pid: int) -> str:
        """Removes a process; returns why it had to end, or an empty text."""
        for name, family in list(self._families.items()):
            family.pids.discard(pid)
            if not family.pids:
                del self._families[name]
        return self._ended.pop(pid, "")

    def overrun(self) -> list[int]:
        """Returns the processes of families above their budget, and stops measuring them.

        The next measurement comes before any family can have used what is left of its budget.
        """
        if time.monotonic() < self._next:
            return []
        late: list[int] = []
        least = MAX_PERIOD_SECONDS * FASTEST_GROWTH
        for name, family in list(self._families.items()):
            left = family.memory - held(family.pids)
            if left < 0 and held_exactly(family.pids) > family.memory:
                del self._families[name]
                late += family.pids
                self._ended |= dict.fromkeys(family.pids, _reason(family.memory))
            least = min(least, left)
        self._next = time.monotonic() + max(PERIOD, least / FASTEST_GROWTH)
        return late


def held(pids: Iterable[int]) -> int:
    """An upper estimate of the bytes of memory that processes and their descendants hold.

    Page tables and unmapped files in memory count. A page that several processes share counts for
    each of them.
    """
    return sum(_estimated(member) for pid in pids for member in descendants(pid))


def held_exactly(pids: Iterable[int]) -> int:
    """The bytes that they hold, with each shared page counted once; takes milliseconds."""
    return sum(_exact(member) for pid in pids for member in descendants(pid))


def _reason(memory: int) -> str:
    return f"used more than {memory / (1 << 30):g} GiB of host memory"


def _estimated(pid: int) -> int:
    sizes = _sizes(f"{pid}/status", ("RssAnon", "RssShmem", "VmPTE"))
    return sizes["RssAnon"] + sizes["VmPTE"] + max(sizes["RssShmem"], _files_in_memory(pid))


def _exact(pid: int) -> int:
    shared = _sizes(f"{pid}/smaps_rollup", ("Pss_Anon", "Pss_Shmem"))
    if not shared["Pss_Anon"]:  # readable for root alone: use the estimate
        return _estimated(pid)
    tables = _sizes(f"{pid}/status", ("VmPTE",))["VmPTE"]
    return shared["Pss_Anon"] + tables + max(shared["Pss_Shmem"], _files_in_memory(pid))


def _sizes(file: str, names: tuple[str, ...]) -> dict[str, int]:
    """Reads some sizes from a file of /proc, in bytes; zeros where it cannot be read."""
    sizes = dict.fromkeys(names, 0)
    for line in read_proc(file).decode().splitlines():
        name, _, size = line.partition(":")
        if name in sizes:
            sizes[name] = int(size.split()[0]) << 10
    return sizes


def _files_in_memory(pid: int) -> int:
    """Bytes of the anonymous files (memfd) that a process has open, mapped or not."""
    size = 0
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if os.readlink(entry.path).startswith("/memfd:"):
                    size += os.stat(entry.path).st_blocks * _BLOCK
    return size
