"""State that the sessions on one GPU share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernel_gym.devices.gpu.arena import GpuArena
from kernel_gym.devices.gpu.vendors import Vendor


@dataclass(frozen=True)
class Host:
    """State that sessions on one GPU share."""

    arena: GpuArena
    vendor: Vendor
    arch: str
    reported: Mapping[str, Any]
    """The GPU's properties, see `kernel_gym.devices.gpu.vendors.reported`."""
