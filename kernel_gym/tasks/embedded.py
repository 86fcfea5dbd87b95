"""Languages inside of Python: Gluon, FlyDSL and TileLang.

Tasks in Triton accept them. Tasks of some modes require one of them.
"""

from __future__ import annotations

import importlib.util
import re
from types import MappingProxyType

from kernel_gym.extras import missing_extra
from kernel_gym.tasks.names import embedded_file

EXTRAS = MappingProxyType({"flydsl": "FlyDSL", "tilelang": "TileLang"})
"""Packages of languages that are extras of this package, each with the language's name."""
KERNELS = MappingProxyType({"flydsl": "@flyc.kernel", "tilelang": "@tilelang.jit"})
"""Decorators of kernels, by package of `EXTRAS`."""
WRITES_HIP = frozenset({"tilelang"})
"""Packages of `EXTRAS` that write kernels in HIP, which a compiler of HIP builds."""
_IMPORTS = r"^[ \t]*(?:import|from)[ \t][^#\n]*\b{}\b"
_EXTRAS = MappingProxyType(
    {package: re.compile(_IMPORTS.format(package), re.MULTILINE) for package in EXTRAS}
)
"""The import of each package of `EXTRAS`."""
_OTHERS = MappingProxyType(
    {
        "HIP": re.compile(r"__global__|^[ \t]*#[ \t]*include\b", re.MULTILINE),
        "Gluon": re.compile(_IMPORTS.format("gluon"), re.MULTILINE),
        "Triton": re.compile(_IMPORTS.format("triton"), re.MULTILINE),
        "PyTorch": re.compile(_IMPORTS.format("torch"), re.MULTILINE),
    }
)
"""Signs of other languages in a source, by language. The first that fits counts."""


def uses(package: str, source: str) -> bool:
    """Whether a Python module imports a package of `EXTRAS`."""
    return bool(_EXTRAS[package].search(source))


def extra_of(source: str) -> str:
    """Returns the package of `EXTRAS` that a Python module imports; empty if it imports none."""
    return next((package for package in EXTRAS if uses(package, source)), "")


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
    if not package:
        return ""
    if uses(package, source):
        other = next((name for name in EXTRAS if name != package and uses(name, source)), "")
        return foreign_import(other, package) if other else ""
    language = language_of(source)
    named = f"a source in {language}" if language else f"no import of {package}"
    return (
        f"found {named}, expected one in {EXTRAS[package]}: import {package} and {_cure(package)}"
    )


def _cure(package: str) -> str:
    return f"write {KERNELS[package]} kernels, or choose a task in another mode"


def foreign_import(other: str, package: str) -> str:
    """Returns why an import of one package is refused in tasks that require another one."""
    return f"found an import of {other}, expected {EXTRAS[package]} alone: {_cure(package)}"


def foreign_launch(package: str) -> str:
    """Returns why a launch by Triton is refused in tasks that require a package of `EXTRAS`."""
    return (
        f"found a launch of a kernel in Triton, expected {EXTRAS[package]} alone: write it as a "
        f"{KERNELS[package]} kernel, or choose a task in another mode"
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
    return not ("gluon" in source or extra_of(source))


def installed_extras(has_hip: bool) -> tuple[str, ...]:
    """Returns the packages of `EXTRAS` that candidates can use here.

    Args:
        has_hip: Whether HIP can be built.
    """
    installed = (name for name in EXTRAS if importlib.util.find_spec(name) is not None)
    return tuple(name for name in installed if has_hip or name not in WRITES_HIP)
