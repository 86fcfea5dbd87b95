"""A simulator of AMD Instinct GPUs: runs their machine code on the CPU and models its time."""

from __future__ import annotations

from typing import Any

import kernel_gym


def __getattr__(name: str) -> Any:
    """Finds `kernel_gym.sim.enable`, whose code needs rooms above this one."""
    if name == "enable":
        return kernel_gym.enable_simulation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
