"""Keeps candidates to the language that their task requires, in the process that loads them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

from kernel_gym.sandbox.failures import BuildError
from kernel_gym.tasks.embedded import EXTRAS, foreign_import, foreign_launch
from kernel_gym.worker.sim import triton_driver


def require(package: str) -> None:
    """Refuses launches by Triton and imports of other packages of `EXTRAS` in this process.

    Args:
        package: The package of `EXTRAS` that the task requires.
    """
    triton_driver.refuse(foreign_launch(package))
    sys.meta_path.insert(0, _Others(package))


class _Others(MetaPathFinder):
    """A finder that finds nothing, and refuses to look for other packages of `EXTRAS`."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name in EXTRAS and name != self._package:
            raise BuildError(foreign_import(name, self._package))
