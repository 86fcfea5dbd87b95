"""Edits: replies that change a kernel instead of writing it anew.

A reply may hold blocks of text to find and text to put in its place, the format that aider and
AlphaEvolve (Novikov et al., 2025) have models write:

    | <<<<<<< SEARCH
    | BLOCK=256
    | =======
    | BLOCK=4096, num_warps=8
    | >>>>>>> REPLACE

The bars are not part of it: they keep doctest from reading the last line. Edits are applied to the
fastest kernel of the episode that passed, at first to the task's start kernel. So a policy may
improve kernels that it could not write.
"""

from __future__ import annotations

import re

from kernel_gym.envs.reply import extract_source
from kernel_gym.records import Outcome
from kernel_gym.training.episode import Episode

_FORM = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n"
_EDIT = re.compile(
    r"^<<<<<<< SEARCH\n(.*?)\n=======\n(.*?)\n?>>>>>>> REPLACE$", re.DOTALL | re.MULTILINE
)


class EditError(ValueError):
    """An edit does not apply; the message says which and why."""


def edit_text(old: str, new: str) -> str:
    """An edit as it is written in a reply."""
    return _FORM.format(old, new)


def apply_edits(source: str, reply: str) -> str:
    r"""Applies the edits in a reply, one after the other.

    Args:
        source: What is changed.
        reply: Text with one edit or more. Where a text that is searched for does not occur as it
            is, it is searched for whatever white space there is between its words.

    Returns:
        The changed source.

    Raises:
        EditError: A text that is searched for does not occur exactly once.

    Example:
        >>> apply_edits("f(B=1)\n", "<<<<<<< SEARCH\nB=1\n=======\nB=2\n>>>>>>> REPLACE\n")
        'f(B=2)\n'
    """
    for number, (old, new) in enumerate(_EDIT.findall(reply), start=1):
        exact = re.escape(old)
        loose = r"\s+".join(map(re.escape, old.split()))
        pattern = exact if old in source or not loose else loose
        found = len(re.findall(pattern, source))
        if found != 1:
            raise EditError(f"edit {number}: {old[:60]!r} occurs {found} times, expected once")
        source = re.sub(pattern, lambda match, new=new: new, source)
    return source


def submission(episode: Episode, reply: str) -> str:
    """The source that a reply submits: the one it holds, or the one that its edits lead to.

    Args:
        episode: What the edits apply to: its fastest kernel that passed, or the start kernel.
        reply: What a policy wrote.

    Returns:
        The source. Edits that do not apply are submitted as they are, below a comment that says
        why: they do not compile, and whoever reads the submission learns the reason.
    """
    if not _EDIT.search(reply):
        return extract_source(reply)
    try:
        return apply_edits(editable(episode), reply)
    except EditError as error:
        return f"# {error}\n{reply}"


def editable(episode: Episode) -> str:
    """What edits apply to: the fastest kernel that passed, or the start; "" without one."""
    right = [turn for turn in episode.turns if turn.evaluation.outcome is Outcome.PASSED]
    best = max(right, key=lambda turn: turn.evaluation.speedup or 0.0, default=None)
    return best.source if best else episode.start or episode.task.start_source or ""
