"""From what a language model writes to a submission."""

from __future__ import annotations

import re

_FENCED = re.compile(r"^```[^\n`]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def extract_source(text: str) -> str:
    r"""The submission in a reply: its last fenced block, or all of it when there is none.

    Example:
        >>> extract_source("Better:\n```python\nx = 1\n```\nDone.")
        'x = 1\n'
        >>> extract_source("x = 1\n")
        'x = 1\n'
    """
    blocks = _FENCED.findall(text)
    return blocks[-1] if blocks else text
