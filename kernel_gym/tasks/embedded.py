"""Languages inside of Python: Gluon, FlyDSL and TileLang.

Tasks in Triton accept them. Tasks of some modes require one of them.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Collection
from types import MappingProxyType

from kernel_gym.extras import missing_extra
from kernel_gym.tasks.names import embedded_file

EXTRAS = MappingProxyType({"flydsl": "FlyDSL", "tilelang": "TileLang"})
"""Packages of languages that are extras of this package, each with the language's name."""
_IMPORTS = r"^[ \t]*(?:import|from)[ \t][^#\n]*\b{}\b"
_FLYDSL = re.compile(_IMPORTS.format("flydsl"), re.MULTILINE)
_TILELANG = re.compile(_IMPORTS.format("tilelang"), re.MULTILINE)


_KERNELS = MappingProxyType({"flydsl": "@flyc.kernel", "tilelang": "@tilelang.jit"})
"""Decorators of kernels."""
_OTHERS = MappingProxyType(
    {
        "HIP": re.compile(r"__global__|^[ \t]*#[ \t]*include\b", re.MULTILINE),
        "Gluon": re.compile(_IMPORTS.format("gluon"), re.MULTILINE),
        "Triton": re.compile(_IMPORTS.format("triton"), re.MULTILINE),
        "PyTorch": re.compile(_IMPORTS.format("torch"), re.MULTILINE),
    }
)
"""Signs of other languages in a source, by language. The first that fits counts."""


def uses_flydsl(source: str) -> bool:
    """Whether a Python module imports FlyDSL."""
    return bool(_FLYDSL.search(source))


def uses_tilelang(source: str) -> bool:
    """Whether a Python module imports TileLang."""
    return bool(_TILELANG.search(source))


def extra_of(source: str) -> str:
    """Returns the package of `EXTRAS` that a Python module imports; empty if it imports none."""
    return "flydsl" if uses_flydsl(source) else "tilelang" if uses_tilelang(source) else ""


def language_of(source: str) -> str:
    """Returns the name of the language that a source is written in; empty if it is not known."""
    if package := extra_of(source):
        return EXTRAS[package]
    return next((name for name, sign in _OTHERS.items() if sign.search(source)), "")


def wrong_language(source: str, package: str) -> str:
    """Returns why a source is none for a task that requires a language; empty if it is one.

    Args:
        source: The source of a candidate.
        package: The package of `EXTRAS` that the task requires, or empty.
    """
    if not package or extra_of(source) == package:
        return ""
    language = language_of(source)
    named = f"a source in {language}" if language else f"no import of {package}"
    return (
        f"found {named}, expected one in {EXTRAS[package]}: import {package} and write "
        f"{_KERNELS[package]} kernels, or choose a task in another mode"
    )


def foreign_launch(package: str) -> str:
    """Returns why a launch by Triton is refused in tasks that require a package of `EXTRAS`."""
    return (
        f"found a launch of a kernel in Triton, expected {EXTRAS[package]} alone: write it as a "
        f"{_KERNELS[package]} kernel, or choose a task in another mode"
    )


def embedded_kernel(language: str, name: str) -> str | None:
    """Returns a right kernel in FlyDSL or TileLang, as a start for candidates, or None.

    It lies beside the guides and not in the problem's folder: it is no part of the problem, whose
    verdicts in other languages stay valid when it changes.

    Args:
        language: "flydsl" or "tilelang".
        name: The name of the problem.
    """
    path = embedded_file(language, name)
    return path.read_text(encoding="utf-8") if name.isidentifier() and path.is_file() else None


def lacking(package: str, embedded: Collection[str]) -> str:
    """Returns one line on why a device takes no candidates in a language; empty if it does.

    Args:
        package: The package of `EXTRAS` that a task requires, or empty.
        embedded: The packages whose candidates the device takes.
    """
    if not package or package in embedded:
        return ""
    foreign = f"candidates in {EXTRAS[package]} are for AMD's GPUs: use --device sim"
    return missing_package(package) or foreign


def missing_package(package: str) -> str:
    """Returns one line that says how to install a package of `EXTRAS`; empty if it is there.

    Args:
        package: The package, or empty, which is always there.
    """
    if not package or importlib.util.find_spec(package) is not None:
        return ""
    return missing_extra(ModuleNotFoundError(name=package)) or ""


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
