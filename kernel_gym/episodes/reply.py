"""Extracts the submission from a reply of a language model."""

from __future__ import annotations

import re

from kernel_gym.tasks import Task

_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_THOUGHT_ENDS = "</think>"
_DEFINITIONS = {
    "triton": r"^(?:async[ \t]+)?(?:def[ \t]+{name}\b|{name}[ \t]*=)",
    "hip": r"\b{name}\s*\([^;{{}}]{{0,4000}}\)\s*\{{|^def[ \t]+{name}\b",
}
"""Patterns that match the definition of a function, by the language of the task."""


def extract_source(text: str, task: Task | None = None) -> str:
    r"""The submission in a reply.

    Args:
        text: The reply. The reasoning of the model, up to `</think>`, is ignored if the answer
            after it has a fenced block or defines the entry point.
        task: The task; its entry point tells a submission from an example of its use.

    Returns:
        The last fenced block that defines the task's entry point; else the last fenced block; else
        the whole text. A block without an end extends to the end of the text.

    Example:
        >>> extract_source("Better:\n```python\nx = 1\n```\nDone.")
        'x = 1\n'
        >>> extract_source("x = 1\n")
        'x = 1\n'
    """
    answer = text.rpartition(_THOUGHT_ENDS)[2]
    blocks: list[str] = _FENCED.findall(answer)
    if not blocks and not _defines(answer, task):
        blocks = _FENCED.findall(text)
    if not blocks:
        return answer
    return ([block for block in blocks if _defines(block, task)] or blocks)[-1]


def _defines(source: str, task: Task | None) -> bool:
    """Whether a text defines the entry point of the task."""
    if task is None:
        return False
    pattern = _DEFINITIONS[task.language].format(name=re.escape(task.entry))
    return re.search(pattern, source, re.MULTILINE) is not None
