"""Where compiled baselines are kept from one run to the next."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """The user's folder for what one kind of device keeps; made if it is not there."""
    folder = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(folder) / "kernel-gym" / name
    path.mkdir(parents=True, exist_ok=True)
    return path
