"""Waiting for processors to spare: who has to wait for one is late by the clock of a comparison."""

from __future__ import annotations

import os
import time
from pathlib import Path

LOAD = Path("/proc/loadavg")
"""The kernel's count of tasks that run or want to is in its fourth field."""
LIMIT = 3.0
"""Seconds after which things are taken as they are."""
CALM = 0.1
"""Seconds without a want of processors that count as calm."""
STEP = 0.01


def wait_for_processors() -> bool:
    """Waits until tasks that want to run were no more than processors for a while.

    Returns:
        Whether that was so within :data:`LIMIT` seconds; True where the kernel does not say.
    """
    end = time.monotonic() + LIMIT
    since = time.monotonic()
    while (now := time.monotonic()) < end:
        if _running() > (os.cpu_count() or 1):
            since = now
        elif now - since >= CALM:
            return True
        time.sleep(STEP)
    return False


def _running() -> int:
    try:
        return int(LOAD.read_text(encoding="ascii").split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return 0
