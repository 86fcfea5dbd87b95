"""Names the installed Triton by its files' sizes and times instead of their contents.

Each entry of Triton's cache has a key with the hash of Triton itself. To compute it, the first
compilation of a process reads all of Triton's compiler, half a gigabyte, in 0.35 s.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

import triton
from triton.runtime import autotuner, cache

_PARTS = ("backends", "compiler", "language", "runtime", "_C")
"""Folders of Triton with the files that decide what it compiles."""
_SUFFIXES = (".py", ".so", ".bc")


@functools.cache
def triton_key() -> str:
    """Returns a text that is another one for another Triton: version, and files with their times.

    An installation writes all files, and an edited file gets a new time.
    """
    root = Path(triton.__file__).parent
    lines = sorted(line for part in _PARTS for line in _described(root / part))
    return f"{triton.__version__}-{root}-{'-'.join(lines)}"


def _described(folder: Path) -> Iterator[str]:
    for path, _, names in os.walk(folder):
        for name in names:
            if name.endswith(_SUFFIXES):
                stat = os.stat(os.path.join(path, name))
                yield f"{path}/{name} {stat.st_size} {stat.st_mtime_ns}"


def install() -> None:
    """Has Triton in this process and its forks use `triton_key`.

    Versions of Triton have their own function in several modules. It stays where none is known.
    """
    for module in (cache, autotuner, triton.compiler.compiler):
        if hasattr(module, "triton_key"):
            module.triton_key = triton_key
