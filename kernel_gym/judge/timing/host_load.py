"""Waits until the host has idle CPUs.

A process that waits for a CPU would look slow in the wall-clock check of a paired timing run.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

LOAD = Path("/proc/loadavg")
"""The fourth field starts with the number of runnable tasks."""
LIMIT = 3.0
"""Timing continues after this many seconds, even if the host is still busy."""
CALM = 0.1
"""The host counts as idle after this many seconds without a task that waits for a CPU."""
STEP = 0.01
"""Seconds between two looks."""


def wait_for_idle_cpus() -> bool:
    """Waits until there were no more runnable tasks than CPUs for a while.

    Returns:
        Whether that happened within :data:`LIMIT` seconds; True if the system does not report it.
    """
    end = time.monotonic() + LIMIT
    since = time.monotonic()
    while (now := time.monotonic()) < end:
        if _runnable() > (os.cpu_count() or 1):
            since = now
        elif now - since >= CALM:
            return True
        time.sleep(STEP)
    return False


def _runnable() -> int:
    try:
        return int(LOAD.read_text(encoding="ascii").split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return 0
