"""Candidates of HIP tasks that are PyTorch extensions: Python modules that call `load_inline`."""

from __future__ import annotations

import re

_IMPORT = re.compile(r"^(?:import|from)[ \t]+torch\b", re.MULTILINE)


def is_extension(source: str, language: str) -> bool:
    """Whether a source for a task in HIP is a Python module that builds an extension.

    Such a module defines the entry point as a Triton candidate does: it returns the outputs.

    Args:
        source: The source.
        language: The language of the task.
    """
    return language == "hip" and "load_inline" in source and bool(_IMPORT.search(source))
