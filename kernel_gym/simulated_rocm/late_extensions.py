"""Prepares PyTorch's extension functions for a simulated GPU when a program first imports them.

The import of `torch.utils.cpp_extension` takes 0.6 s, and most programs do without it.
"""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

MODULE = "torch.utils.cpp_extension"


def install_when_imported() -> None:
    """Makes `load` and `load_inline` build HIP for a GPU, as soon as their module is imported."""
    if MODULE in sys.modules:
        _install()
    else:
        sys.meta_path.insert(0, _Finder())


def _install() -> None:
    from kernel_gym.simulated_rocm import extensions  # imports the module

    extensions.install()


class _Finder(MetaPathFinder):
    """Finds the module and gives it a loader that installs the extensions afterwards."""

    def find_spec(self, name: str, path: Any, target: object = None) -> ModuleSpec | None:
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _install()
