"""The environment in which a command and all its processes find a simulated GPU."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from kernel_gym.simulated_rocm import settings as variables
from kernel_gym.simulated_rocm.folders import compiler_folder, library_folder, rocm_folder
from kernel_gym.simulated_rocm.settings import SimSettings

HOOK = Path(__file__).with_name("hook")
"""The folder with the `sitecustomize` that brings the GPU up in a Python."""
DEFAULT_ROCM = Path("/opt/rocm")
"""The folder that programs take for ROCm's without `ROCM_PATH`."""
FLYDSL_LINES = "FLYDSL_DEBUG_ENABLE_DEBUG_INFO"
"""Variable: set to 1, FlyDSL's kernels have source lines, which findings and profiles name."""


def environment(settings: SimSettings, outer: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the variables of a command.

    The Python that runs kernel-gym comes first on PATH: its PyTorch is the one that the device was
    built for.

    Args:
        settings: The device and what it records.
        outer: The variables of this process.
    """
    inner = {name: value for name, value in outer.items() if name not in variables.VARIABLES}
    inner |= settings.to_environment()
    _put_first(inner, "PYTHONPATH", HOOK)
    _put_first(inner, "PATH", Path(sys.executable).parent)
    libraries, compiler, rocm = library_folder(), compiler_folder(), rocm_folder()
    if libraries is not None:
        _put_first(inner, "LD_LIBRARY_PATH", libraries)
    if compiler is not None and shutil.which("hipcc", path=inner["PATH"]) is None:
        _put_first(inner, "PATH", compiler)
    if rocm is not None and not DEFAULT_ROCM.exists():
        inner.setdefault("ROCM_PATH", str(rocm))
    inner.setdefault(FLYDSL_LINES, "1")
    return inner


def _put_first(variables: dict[str, str], name: str, folder: Path) -> None:
    before = variables.get(name, "")
    parts = [part for part in before.split(os.pathsep) if part and part != str(folder)]
    variables[name] = os.pathsep.join([str(folder), *parts])
