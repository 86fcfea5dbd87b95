"""Copies of start kernels: sources that differ from them by comments and layout only."""

from __future__ import annotations

import ast
import hashlib
import re

from kernel_gym.tasks.task import Task

MAX_SOURCE_CHARACTERS = 200_000
"""Longer sources are compared as they are, in characters."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def is_copy(task: Task, source: str) -> bool:
    """Whether a source is the start kernel of its task, up to comments and layout.

    It is not one for tasks without a start kernel.
    """
    start = task.start_source
    return start is not None and fingerprint(source) == fingerprint(start)


def fingerprint(source: str) -> str:
    """Returns a hash of what a source does: without comments, docstrings and layout."""
    text = source
    if len(source) <= MAX_SOURCE_CHARACTERS:
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
