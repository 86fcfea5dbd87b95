"""Languages inside of Python that candidates of tasks in Triton may use: Gluon and FlyDSL."""

from __future__ import annotations

import re

_FLYDSL = re.compile(r"^[ \t]*(?:import|from)[ \t][^#\n]*\bflydsl\b", re.MULTILINE)


def uses_flydsl(source: str) -> bool:
    """Whether a Python module imports FlyDSL."""
    return bool(_FLYDSL.search(source))


def waits_by_compiler(source: str) -> bool:
    """Whether a compiler allocates shared memory and waits for it, as it does in Triton alone.

    Args:
        source: A candidate of a task in Triton.
    """
    return "gluon" not in source and not uses_flydsl(source)
