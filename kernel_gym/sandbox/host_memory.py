"""The memory that this process may still use, on the host and in its container."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path("/")
_CGROUPS = (
    ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
    (
        "sys/fs/cgroup/memory/memory.limit_in_bytes",
        "sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)
"""Files with the limit and the use of a container's memory, for cgroups of version 2 and 1."""


def available_bytes(root: Path = ROOT) -> int | None:
    """Bytes that can be allocated without swapping; None where the system does not report it.

    Args:
        root: The folder that holds `proc` and `sys`.
    """
    rooms = [_of_host(root), *(_of_container(root / a, root / b) for a, b in _CGROUPS)]
    return min((room for room in rooms if room is not None), default=None)


def _of_host(root: Path) -> int | None:
    match = re.search(r"MemAvailable:\s+(\d+) kB", _text(root / "proc/meminfo"))
    return int(match.group(1)) << 10 if match else None


def _of_container(limit: Path, used: Path) -> int | None:
    most, now = _text(limit).strip(), _text(used).strip()
    if not (most.isdecimal() and now.isdecimal()):
        return None  # "max": no limit
    return max(0, int(most) - int(now))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
