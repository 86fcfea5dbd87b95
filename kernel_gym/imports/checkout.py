"""Facts about a checkout as a whole: its commit and its licence, read from files."""

from __future__ import annotations

import re
from pathlib import Path

from kernel_gym.tasks.inside import read_inside

MAX_TEXT_BYTES = 16 << 20
"""Most bytes of a file that is read here."""
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "COPYING")


def commit_of(checkout: Path) -> str:
    """Returns the commit that a Git working tree is at, or empty if it is none."""
    folder = checkout / ".git"
    if folder.is_file():  # a worktree or a submodule: the file names the folder
        named = _text(checkout, folder).partition("gitdir:")[2].strip()
        folder = checkout / named if named else folder
    head = _text(folder, folder / "HEAD")
    if not head.startswith("ref:"):
        return head if _SHA.fullmatch(head) else ""
    reference = head.removeprefix("ref:").strip()
    common = folder / (_text(folder, folder / "commondir") or ".")
    for place in (folder, common):
        if _SHA.fullmatch(found := _text(place, place / reference)):
            return found
    for line in _text(common, common / "packed-refs").splitlines():
        sha, _, name = line.partition(" ")
        if name == reference and _SHA.fullmatch(sha):
            return sha
    return ""


def licence_of(checkout: Path) -> str:
    """Returns the first line of the licence file, or empty if there is none in the checkout."""
    texts = (_text(checkout, checkout / name) for name in _LICENCES)
    return next((text.splitlines()[0].strip()[:120] for text in texts if text), "")


def _text(folder: Path, path: Path) -> str:
    """Returns the text of a file of a folder; empty if a link leads out of it."""
    try:
        return read_inside(folder, path, MAX_TEXT_BYTES).decode("utf-8", "replace").strip()
    except (OSError, ValueError):  # such as a NUL in a name
        return ""
