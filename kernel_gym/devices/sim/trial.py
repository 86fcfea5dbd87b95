"""A trial: launches that compare kernels, as an autotuner makes them.

A trial is preparation. It costs no modelled time and counts nowhere, so nothing of it may stay: all
memory of the device, variables of modules included, is what it was before. What was allocated
meanwhile is poisoned. So a kernel cannot hide work in a trial.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernel_gym.devices.sim.facts import CallFacts
from kernel_gym.devices.sim.kept_memory import KeptMemory, Region
from kernel_gym.devices.sim.memory import POISON


@dataclass(frozen=True)
class Trial:
    """The state of a call when a trial began."""

    memory: KeptMemory
    seconds: float
    used: CallFacts
    launches: list[dict[str, Any]]

    def undo(self, regions: Sequence[Region]) -> None:
        """Gives the live regions of memory their content of before, and poisons new ones."""
        self.memory.restore(regions)
        for region in regions:
            if not self.memory.has(region):
                ctypes.memset(region[0], POISON, region[1])
