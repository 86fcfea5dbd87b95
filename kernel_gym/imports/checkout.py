"""Facts about a checkout as a whole: its commit and its licence, read from files."""

from __future__ import annotations

import re
from pathlib import Path

_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "COPYING")


def commit_of(checkout: Path) -> str:
    """Returns the commit that a Git working tree is at, or empty if it is none."""
    folder = checkout / ".git"
    if folder.is_file():  # a worktree or a submodule: the file names the folder
        named = _text(folder).partition("gitdir:")[2].strip()
        folder = checkout / named if named else folder
    head = _text(folder / "HEAD")
    if not head.startswith("ref:"):
        return head if _SHA.fullmatch(head) else ""
    reference = head.removeprefix("ref:").strip()
    common = folder / (_text(folder / "commondir") or ".")
    for place in (folder, common):
        if _SHA.fullmatch(found := _text(place / reference)):
            return found
    for line in _text(common / "packed-refs").splitlines():
        sha, _, name = line.partition(" ")
        if name == reference and _SHA.fullmatch(sha):
            return sha
    return ""


def licence_of(checkout: Path) -> str:
    """Returns the first line of the licence file, or empty if there is none."""
    texts = (_text(checkout / name) for name in _LICENCES)
    return next((text.splitlines()[0].strip()[:120] for text in texts if text), "")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
