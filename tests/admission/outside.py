"""A problem in a folder outside the package."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from kernel_gym.tasks import get_problem


def copy_problem(name: str, copy: str, folder: Path, **changes: str) -> Path:
    """Copies a problem under another name; `changes` are replacements by file stem.

    A change is "old -> new" in the text of that file. Names must differ from test to test, since
    modules stay imported.
    """
    target = folder / copy
    shutil.copytree(
        get_problem(name).folder, target, ignore=shutil.ignore_patterns("__pycache__", "*.json")
    )
    for file in filter(Path.is_file, target.rglob("*")):
        text = re.sub(
            rf'\bdef {name}\(|"{name}"|\bint {name}\(',
            lambda m: m[0].replace(name, copy),
            file.read_text(),
        )
        if file.stem in changes and file.suffix == ".py":
            old, new = changes[file.stem].split(" -> ")
            assert old in text
            text = text.replace(old, new)
        file.write_text(text)
    return target
