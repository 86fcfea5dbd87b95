"""From what a language model writes to a submission."""

from __future__ import annotations

import re

from kernel_gym.tasks import Task

_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_THOUGHT_ENDS = "</think>"
_DEFINITIONS = {
    "triton": r"^(?:async[ \t]+)?(?:def[ \t]+{name}\b|{name}[ \t]*=)",
    "hip": r"\b{name}\s*\([^;{{}}]{{0,4000}}\)\s*\{{",
}
"""What defines a function, by the language of the task."""


def extract_source(text: str, task: Task | None = None) -> str:
    r"""The submission in a reply.

    Args:
        text: The reply. What a model wrote while it was thinking, up to `</think>`, is left out
            where a fenced block follows.
        task: What is answered.

    Returns:
        The last fenced block that defines the task's entry point, so that an example of its use
        behind it is no submission; else the last fenced block; else all of the text. A block that
        was cut off ends with the text.

    Example:
        >>> extract_source("Better:\n```python\nx = 1\n```\nDone.")
        'x = 1\n'
        >>> extract_source("x = 1\n")
        'x = 1\n'
    """
    answer = text.rpartition(_THOUGHT_ENDS)[2]
    blocks = _FENCED.findall(answer)
    if not blocks and not _defines(answer, task):
        blocks = _FENCED.findall(text)
    if not blocks:
        return answer
    return ([block for block in blocks if _defines(block, task)] or blocks)[-1]


def _defines(source: str, task: Task | None) -> bool:
    """Whether a text defines the function that is called."""
    if task is None:
        return False
    pattern = _DEFINITIONS[task.language].format(name=re.escape(task.entry))
    return re.search(pattern, source, re.MULTILINE) is not None
