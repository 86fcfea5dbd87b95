"""Copies of start kernels: sources that differ from them by comments and layout only."""

from __future__ import annotations

import ast
import hashlib
import re
from functools import cache

from kernel_gym.records import Evaluation, Outcome
from kernel_gym.rewards.reward import NOTHING_KNOWN, Context
from kernel_gym.rewards.terms import term
from kernel_gym.tasks.names import UnknownName
from kernel_gym.tasks.registry import get_task

_LONGEST = 200_000
"""Longer sources are compared as they are, in characters."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@term
def copied(evaluation: Evaluation, context: Context = NOTHING_KNOWN) -> float:
    """Returns 1 if a kernel that passed is the start kernel, up to comments and layout.

    Use it with a negative weight. It is 0 for tasks without a start kernel, and if the source is
    not known.
    """
    if evaluation.outcome is not Outcome.PASSED or context.source is None:
        return 0.0
    start = _start(evaluation.task)
    return float(start is not None and fingerprint(context.source) == start)


def fingerprint(source: str) -> str:
    """Returns a hash of what a source does: without comments, docstrings and layout."""
    text = source
    if len(source) <= _LONGEST:
        text = _python(source) or "".join(_COMMENT.sub("", source).split())
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _python(source: str) -> str | None:
    """Returns the syntax tree as text, without docstrings, or None if it is no Python."""
    try:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node):
                del node.body[0]
        return ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@cache
def _start(task_id: str) -> str | None:
    try:
        start = get_task(task_id).start_source
    except UnknownName:  # a record of another version
        return None
    return None if start is None else fingerprint(start)
