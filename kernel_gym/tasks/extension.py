"""Candidates of HIP tasks that are PyTorch extensions.

They are Python modules that call `load_inline`, or files in HIP as `cpp_extension.load` takes them.
"""

from __future__ import annotations

import re

_BINDINGS = re.compile(r"^[ \t]*PYBIND11_MODULE[ \t]*\(", re.MULTILINE)
_IMPORT = re.compile(r"^(?:import|from)[ \t]+torch\b", re.MULTILINE)


def is_extension(source: str, language: str) -> bool:
    """Whether a source for a task in HIP is a Python module that builds an extension.

    Such a module defines the entry point as a Triton candidate does: it returns the outputs.

    Args:
        source: The source.
        language: The language of the task.
    """
    return language == "hip" and "load_inline" in source and bool(_IMPORT.search(source))


def is_extension_file(source: str, language: str) -> bool:
    """Whether a source for a task in HIP is a file with the bindings of an extension.

    Its module has a function with the name of the entry point, or `forward`. This function returns
    the outputs.

    Args:
        source: The source.
        language: The language of the task.
    """
    is_module = is_extension(source, language)
    return language == "hip" and not is_module and bool(_BINDINGS.search(source))
