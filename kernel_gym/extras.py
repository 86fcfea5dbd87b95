"""The optional parts of the package: a missing module is explained by the extra that installs it.

`pip install kernel-gym` alone has the records, the rewards, the client of the service and the
commands that read runs. What runs candidates needs the extra `judge`, plots the extra `report`.
Other packages add parts by entry points, which are read once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import lazy_loader

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

EXTRAS = {
    "report": frozenset({"jinja2", "markupsafe", "matplotlib", "pygments", "scipy"}),
    "judge": frozenset({"flit_core", "itanium_demangler", "msgpack", "safetensors"}),
    "service": frozenset({"fastapi", "prometheus_client", "uvicorn"}),
    "train": frozenset({"datasets", "peft", "tokenizers", "transformers", "trl"}),
    "mcp": frozenset({"mcp"}),
    "openai": frozenset({"urllib3"}),
    "ray": frozenset({"ray"}),
    "flydsl": frozenset({"flydsl"}),
    "tilelang": frozenset({"tilelang"}),
    "inspect": frozenset({"inspect_ai"}),
    "kernels": frozenset({"kernels"}),
    "openenv": frozenset({"openenv"}),
    "skyrl": frozenset({"skyrl_gym"}),
    "tinker": frozenset({"tinker_cookbook"}),
    "verifiers": frozenset({"verifiers"}),
    "verl": frozenset({"verl"}),
}
"""Modules that an extra installs, by their import names."""
_BUILDS = ("torch", "triton")
"""Packages of which a user chooses the build, see `docs/installation.md`."""


@cache
def _installed_points() -> Any:
    """The entry points of all packages. Reading those of 130 packages takes 0.02 s."""
    from importlib.metadata import entry_points

    return entry_points()


def points_of(group: str) -> EntryPoints:
    """Returns the entry points of a group, of all packages that are installed."""
    points: EntryPoints = _installed_points().select(group=group)
    return points


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """Returns one line that says what to install; None if no extra has the missing module.

    Example:
        >>> missing_extra(ModuleNotFoundError(name="matplotlib.pyplot"))
        "matplotlib is missing; pip install 'kernel-gym[report]'"
    """
    module = (error.name or "").partition(".")[0]
    if module in _BUILDS:
        return f"{module} is missing; install a build of it, then pip install 'kernel-gym[judge]'"
    for extra, modules in EXTRAS.items():
        if module in modules:
            return f"{module} is missing; pip install 'kernel-gym[{extra}]'"
    return None


def attach(
    package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], object]:
    """Returns `__getattr__`, `__dir__` and `__all__` of a package with a stub file (PEP 562).

    The first use of a name imports it. If a module of an extra is missing, it raises a
    `ModuleNotFoundError` of one line that names the extra.

    Args:
        package: `__name__` of the package.
        file: `__file__` of the package; the stub lies beside it.
    """
    load, names, public = lazy_loader.attach_stub(package, file)

    def explained(name: str) -> object:
        try:
            return load(name)
        except ModuleNotFoundError as error:
            text = missing_extra(error)
            if text is None:
                raise
            raise ModuleNotFoundError(f"{package}.{name}: {text}", name=error.name) from None

    return explained, names, public
