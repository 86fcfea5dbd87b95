"""The folders in which compiled baselines are cached between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Returns the user's cache folder for one kind of device; creates it if needed."""
    folder = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(folder) / "kernel-gym" / name
    path.mkdir(parents=True, exist_ok=True)
    return path
