"""What the sessions on one GPU share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernel_gym.devices.gpu.arena import Arena
from kernel_gym.devices.gpu.vendors import Vendor


@dataclass(frozen=True)
class Host:
    """What sessions on one GPU share."""

    arena: Arena
    vendor: Vendor
    arch: str
    reported: Mapping[str, Any]
    """The GPU's properties, see `kernel_gym.devices.gpu.vendors.reported`."""
