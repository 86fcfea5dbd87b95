"""Languages inside of Python that tasks in Triton may use: Gluon, FlyDSL and TileLang."""

from __future__ import annotations

import importlib.util
import re
from types import MappingProxyType

EXTRAS = MappingProxyType({"flydsl": "FlyDSL", "tilelang": "TileLang"})
"""Packages of languages that are extras of this package, each with the language's name."""
_IMPORTS = r"^[ \t]*(?:import|from)[ \t][^#\n]*\b{}\b"
_FLYDSL = re.compile(_IMPORTS.format("flydsl"), re.MULTILINE)
_TILELANG = re.compile(_IMPORTS.format("tilelang"), re.MULTILINE)


def uses_flydsl(source: str) -> bool:
    """Whether a Python module imports FlyDSL."""
    return bool(_FLYDSL.search(source))


def uses_tilelang(source: str) -> bool:
    """Whether a Python module imports TileLang."""
    return bool(_TILELANG.search(source))


def extra_of(source: str) -> str:
    """Returns the package of `EXTRAS` that a Python module imports; empty if it imports none."""
    return "flydsl" if uses_flydsl(source) else "tilelang" if uses_tilelang(source) else ""


def waits_by_compiler(source: str) -> bool:
    """Whether a compiler allocates shared memory and waits for it, as it does in Triton alone.

    TileLang's compiler puts barriers, too, but there is no second compiler to ask about them.

    Args:
        source: A candidate of a task in Triton.
    """
    return not ("gluon" in source or uses_flydsl(source) or uses_tilelang(source))


def installed_extras(has_hip: bool) -> tuple[str, ...]:
    """Returns the packages of `EXTRAS` that candidates can use here.

    Args:
        has_hip: Whether HIP can be built: TileLang writes HIP.
    """
    installed = (name for name in EXTRAS if importlib.util.find_spec(name) is not None)
    return tuple(name for name in installed if has_hip or name != "tilelang")
