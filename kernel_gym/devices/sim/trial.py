"""A trial: launches that compare kernels, as an autotuner makes them.

A trial is preparation. It costs no modelled time and counts nowhere, so nothing of it may stay: all
memory of the device, variables of modules included, is what it was before. What was allocated
meanwhile is poisoned. So a kernel cannot hide work in a trial.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kernel_gym.devices.sim.facts import CallFacts
from kernel_gym.devices.sim.memory import POISON

Region = tuple[int, int]
"""An address of device memory, and a number of bytes."""


class KeptMemory:
    """A copy of regions of device memory."""

    def __init__(self, regions: Iterable[Region]) -> None:
        self._copies: dict[Region, bytes] = {}
        self.keep(regions)

    def keep(self, regions: Iterable[Region]) -> None:
        """Copies the regions that are not kept yet."""
        for region in regions:
            if region not in self._copies:
                self._copies[region] = ctypes.string_at(*region)

    def restore(self, regions: Iterable[Region]) -> None:
        """Writes the copies back to the regions that still live, and poisons all others."""
        for start, size in regions:
            content = self._copies.get((start, size))
            if content is None:
                ctypes.memset(start, POISON, size)
            else:
                ctypes.memmove(start, content, size)


@dataclass(frozen=True)
class Trial:
    """The state of a call when a trial began."""

    memory: KeptMemory
    seconds: float
    used: CallFacts
    launches: list[dict[str, Any]]
