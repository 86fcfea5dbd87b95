"""Finds the folders of a GPU compiler's headers and libraries, as the compiler itself reports them.

Toolkits lie in many places: under `/usr/local`, in a Python package, in a store of links. The
confined process that compiles a candidate sees only the folders named to it, so they are asked for
once, outside, with a source of the judge.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

PROBE = "#include <hip/hip_runtime.h>\n"
"""A source that reads the headers of every candidate."""
PROBE_SECONDS = 60.0
LEAST_DEPTH = 3
"""Path parts that a folder must have: never `/`, `/usr` or a home."""
_PATH = re.compile(r"""(?:-[IL])?["']?(/[^\s"':\\]+)""")


@lru_cache(maxsize=8)
def toolkit_folders(command: tuple[str, ...], suffix: str) -> tuple[str, ...]:
    """Returns the folders of headers and libraries that a compile command uses.

    Args:
        command: The compiler and its options, without files.
        suffix: Of a source file, such as `.cu`.

    Returns:
        Existing folders, links resolved and unresolved. Empty if the compiler reports nothing.
    """
    with tempfile.TemporaryDirectory(prefix="kernel-gym-") as folder:
        probe = Path(folder, f"probe{suffix}")
        probe.write_text(PROBE, encoding="utf-8")
        reports = [
            _output([*command, "-M", str(probe)], folder),
            _output([*command, "--dryrun", "-o", "probe.so", str(probe)], folder),
            _output([*command, "-###", "-o", "probe.so", str(probe)], folder),
        ]
        paths = [path for report in reports for path in _PATH.findall(report)]
        return tuple(_folders(path for path in paths if not path.startswith(folder)))


def _output(command: list[str], folder: str) -> str:
    """Returns what a compiler prints; empty if it cannot be run."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def _folders(paths: Iterable[str]) -> Iterable[str]:
    """Yields each path's folder once, as named and with links resolved."""
    seen: set[str] = set()
    for path in paths:
        for place in (os.path.normpath(path), os.path.realpath(path)):
            folder = place if os.path.isdir(place) else os.path.dirname(place)
            if folder in seen or len(Path(folder).parts) < LEAST_DEPTH:
                continue
            seen.add(folder)
            if os.path.isdir(folder):
                yield folder
