"""The files that a compiler has read, with digests, so that a change of any of them is noticed."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from pathlib import Path


def keep_read_files(rules: str, place: Path) -> None:
    """Writes the names and digests of the files that a compiler read.

    Args:
        rules: The rules for make that the compiler wrote with `-MD`; empty for a linker.
        place: The file that is written, whole or not at all.
    """
    own = place.with_name(f"{place.name}.{os.getpid()}")
    own.write_text(json.dumps(_digests(rules)), encoding="utf-8")
    own.replace(place)


def are_unchanged(place: Path) -> bool:
    """Whether all files of a list that `keep_read_files` wrote have the content that was read.

    A list that is missing or cannot be read counts as changed.
    """
    try:
        files: dict[str, str] = json.loads(place.read_text(encoding="utf-8"))
        return all(_digest_of(Path(name)) == digest for name, digest in files.items())
    except (OSError, ValueError):
        return False


def _digests(rules: str) -> dict[str, str]:
    lines = rules.replace("\\\n", " ").splitlines()
    names = [name for line in lines for name in shlex.split(line.partition(": ")[2])]
    return {name: _digest_of(Path(name)) for name in names}


def _digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "absent"
