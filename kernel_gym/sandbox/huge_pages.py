"""Gathers the memory of the template into huge pages, which a fork copies in a fifth of the time.

A fork and the end of a child go through the tables of all pages, 46,000 small ones here. What a
child writes to is split into small pages again, in the child alone.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from kernel_gym.sandbox import kernel_calls

FIRST_FORKS = 5
"""Forks before the pages are gathered. That takes 0.3 s of a processor, so one evaluation alone,
which forks five times at most, does not pay for it."""
_MAX_RANGE_BYTES = 1 << 30
"""Larger ranges are address space that is reserved and not used."""


class HugePages:
    """Gathers the pages of a process that forks often, once."""

    def __init__(self) -> None:
        self._forks = 0

    def before_fork(self) -> None:
        """Counts a fork, and gathers the pages before the first one that a single run lacks."""
        if self._forks == FIRST_FORKS:
            gather()
        self._forks += 1


def gather() -> None:
    """Gathers the private pages of this process, as far as the kernel does it."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if fields[1] != "rw-p" or (len(fields) > 5 and fields[5] != "[heap]"):
            continue
        start, end = (int(bound, 16) for bound in fields[0].split("-"))
        if end - start <= _MAX_RANGE_BYTES:
            with contextlib.suppress(OSError):
                kernel_calls.collapse_pages(start, end)
