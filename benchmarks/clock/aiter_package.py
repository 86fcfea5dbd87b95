"""Imports the FlyDSL kernels of a checkout of aiter, without the rest of aiter.

`import aiter` builds HIP extensions and asks ROCm's programs for the chip. The FlyDSL kernels need
neither, so the packages above them are empty here, and the chip is the simulated one.
"""

from __future__ import annotations

import importlib
import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

_EMPTY = (
    *("aiter", "aiter.jit", "aiter.jit.utils"),
    *("aiter.ops", "aiter.ops.flydsl", "aiter.utility"),
)
_DTYPES = {
    "fp8": torch.float8_e4m3fn,
    "fp4x2": torch.uint8,
    "fp8_e8m0": torch.uint8,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
"""aiter's names of element types. It has bytes for those that a PyTorch lacks, too."""
_MARK = Path("aiter", "ops", "flydsl", "gemm_kernels.py")
"""A file of aiter by which a checkout is recognised."""
_MOVED = ("SMEM_CAPACITY_MAP", "check_smem_capacity")
"""Names that FlyDSL 0.5 has in another module than aiter asks."""


class AiterPackage:
    """The FlyDSL kernels of aiter.

    Args:
        checkouts: Folders, one of which is a checkout of aiter.
        arch: The simulated chip.
        compute_units: Of the chip.

    Raises:
        FileNotFoundError: No folder is a checkout of aiter.
    """

    def __init__(self, checkouts: list[Path], arch: str, compute_units: int) -> None:
        self._root = next((folder for folder in checkouts if (folder / _MARK).is_file()), None)
        if self._root is None:
            raise FileNotFoundError(f"no checkout has {_MARK}")
        for name in _EMPTY:
            self._add(name)
        sys.modules["aiter"].logger = logging.getLogger("aiter")  # type: ignore[attr-defined]
        chip = {"get_gfx": lambda: arch, "get_gfx_runtime": lambda: arch}
        self._add("aiter.jit.utils.chip_info", {**chip, "get_cu_num": lambda: compute_units})
        self._add("aiter.utility.dtypes", _DTYPES)
        _name_what_moved()

    def module(self, name: str) -> Any:
        """A module of aiter by its name below `aiter.ops.flydsl`."""
        return importlib.import_module(f"aiter.ops.flydsl.{name}")

    def _add(self, name: str, values: dict[str, Any] | None = None) -> None:
        """Adds a module with values, or without any an empty package."""
        assert self._root
        module = ModuleType(name)
        if values is None:
            module.__path__ = [str(self._root.joinpath(*name.split(".")))]
        else:
            vars(module).update(values)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


def _name_what_moved() -> None:
    asked = importlib.import_module("flydsl.utils.smem_allocator")
    there = importlib.import_module("flydsl.runtime.device")
    for name in _MOVED:
        if not hasattr(asked, name):
            setattr(asked, name, getattr(there, name))
