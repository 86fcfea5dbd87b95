"""Properties that the simulated devices report to host code: Triton, `torch.cuda` and HIP.

A HIP program reads them before it starts, so this module does not load PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_gym.hardware import DeviceSpec


@dataclass(frozen=True)
class HostProperties:
    """Properties that a driver reports besides the peaks, from AMD's data sheets.

    Attributes:
        name: The name that a driver reports: a die has the name of its package.
        arch: Target, such as `gfx942`.
        features: The features behind the target in its full name.
        minor: Minor number of the compute capability; the major one is 9.
        clock_khz: Peak engine clock.
        memory_clock_khz: Clock of the memory.
        bus_bits: Width of the memory bus.
        memory_bytes: Bytes of the memory.
        l2_bytes: Bytes of the L2 cache of one die.
    """

    name: str
    arch: str
    features: str
    minor: int
    clock_khz: int
    memory_clock_khz: int
    bus_bits: int
    memory_bytes: int
    l2_bytes: int

    @property
    def spec(self) -> DeviceSpec:
        """The peaks of the device."""
        from kernel_gym.hardware import SIMULATED  # loads PyTorch

        return SIMULATED[self.arch]

    @property
    def full_arch(self) -> str:
        """The full name of the target, such as `gfx942:sramecc+:xnack-`."""
        return f"{self.arch}:{self.features}"


_MI250X, _MI300X, _MI355X = (f"AMD Instinct {name}" for name in ("MI250X", "MI300X", "MI355X"))
_ECC = "sramecc+:xnack-"
PROPERTIES = {
    device.arch: device
    for device in (
        HostProperties(_MI250X, "gfx90a", _ECC, 0, 1_700_000, 1_600_000, 4096, 64 << 30, 8 << 20),
        HostProperties(_MI300X, "gfx942", _ECC, 4, 2_100_000, 2_600_000, 8192, 192 << 30, 4 << 20),
        HostProperties(_MI355X, "gfx950", _ECC, 5, 2_400_000, 3_900_000, 8192, 288 << 30, 4 << 20),
    )
}
