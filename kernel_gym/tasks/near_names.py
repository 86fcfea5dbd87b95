"""Messages for unknown names: which known names are similar."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MAX_LISTED = 24
"""Most known names of a message. More of them hide what it says."""


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Returns up to three known names that are similar to a name, or all tasks of that name.

    If the name has no `/` and some known names end in `/name`, all of those are returned.

    Example:
        >>> near_names("softmax", ["hip2hip/softmax", "hip2hip/log_softmax"])
        ['hip2hip/softmax']
    """
    names = list(known)
    if "/" not in name and (tasks := [other for other in names if other.endswith(f"/{name}")]):
        return tasks
    return difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.4)


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Returns the message for an unknown name: the similar names, or else the known ones.

    Example:
        >>> unknown("reward", "kevn", ["kevin", "sol"])
        "unknown reward 'kevn'; did you mean kevin?"
    """
    names = list(known)
    near = near_names(name, names)
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    listed = ", ".join(names[:MAX_LISTED]) + more
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {listed}"
    return f"unknown {what} {name!r}; {hint}"
