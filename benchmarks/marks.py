"""Parts of a page that commands write: each stands between a mark and an end."""

from __future__ import annotations

from pathlib import Path

from kernel_gym.errors import InputError

MARK = "<!-- {}: written by `{}` -->"
END = "<!-- end -->"


def filled(page: Path, text: str, name: str, command: str, part: str) -> str:
    """Returns the text of a page with a new part.

    Args:
        page: The page, for errors.
        text: Its text.
        name: The name of the part.
        command: The command that writes it.
        part: The part; it ends with a line feed.

    Raises:
        InputError: The page lacks the mark or its end.
    """
    mark = MARK.format(name, command)
    head, present, rest = text.partition(mark + "\n")
    _, end, tail = rest.partition(END)
    if not present or not end:
        raise InputError(f"{page}: found no part '{name}', expected the line {mark} and an end")
    return f"{head}{mark}\n\n{part}\n{END}{tail}"
