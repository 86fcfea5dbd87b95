"""Prepares PyTorch's extension functions for a simulated GPU when a program first imports them.

The import of `torch.utils.cpp_extension` takes 0.6 s, and most programs do without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from kernel_gym.worker.sim.runtime import SimRuntime

MODULE = "torch.utils.cpp_extension"


def install_when_imported(runtime: SimRuntime) -> None:
    """Makes `load` and `load_inline` build HIP for a GPU, as soon as their module is imported.

    Args:
        runtime: The GPU of this process.
    """
    if MODULE in sys.modules:
        _install(runtime)
    else:
        sys.meta_path.insert(0, _Finder(lambda: _install(runtime)))


def _install(runtime: SimRuntime) -> None:
    from kernel_gym.simulated_rocm import extensions  # imports the module

    extensions.install(runtime)


class _Finder(MetaPathFinder):
    """Finds the one module and gives it a loader that calls a function afterwards."""

    def __init__(self, afterwards: Callable[[], None]) -> None:
        self._afterwards = afterwards

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._afterwards)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Loader, afterwards: Callable[[], None]) -> None:
        self._loader = loader
        self._afterwards = afterwards

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._afterwards()
