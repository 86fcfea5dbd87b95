"""Remembers what compilers say of their version: asking one takes 0.05 s of a process.

An answer is kept in the user's cache, where no candidate writes, for one file of one size and time.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path

from kernel_gym.devices.cache import cache_folder

_MOST = 64
"""Most answers that are kept."""


def version_text(compiler: str) -> str:
    """Returns what a compiler prints for `--version`.

    Args:
        compiler: Its path. A file that was replaced or changed is asked again.
    """
    path = os.path.realpath(compiler)
    stat = os.stat(path)
    key = f"{compiler} {path} {stat.st_size} {stat.st_mtime_ns}"
    kept = _read()
    if key not in kept:
        answer = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
        kept[key] = answer
        _write(kept)
    return kept[key]


def _file() -> Path:
    return cache_folder("compilers") / "versions.json"


def _read() -> dict[str, str]:
    """Returns the answers so far; none if the file cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        stored = json.loads(_file().read_text(encoding="utf-8"))
        if isinstance(stored, dict) and all(isinstance(text, str) for text in stored.values()):
            return stored
    return {}


def _write(kept: dict[str, str]) -> None:
    """Replaces the file as a whole; two processes at a time each write a whole one."""
    with contextlib.suppress(OSError):
        draft = _file().with_name(f"versions.{os.getpid()}.part")
        draft.write_text(json.dumps(dict(list(kept.items())[-_MOST:])), encoding="utf-8")
        os.replace(draft, _file())
