"""`rocminfo` where ROCm is not installed: describes the simulated GPU to libraries that ask."""

from __future__ import annotations

from kernel_gym.simulated_rocm.settings import DEFAULT, PREFIX, SimSettings
from kernel_gym.worker.sim.properties import PROPERTIES, HostProperties

_RULE = "*" * 7


def main() -> int:
    """Prints the agents; returns the exit status."""
    settings = SimSettings.from_environment()
    arch = settings.arch if settings else DEFAULT.removeprefix(PREFIX)
    print(text(PROPERTIES[arch]))
    return 0


def text(device: HostProperties) -> str:
    """Returns the part of `rocminfo`'s output that programs read, for one GPU."""
    lines = [
        ("Name", device.arch),
        ("Marketing Name", f"{device.name} (simulated)"),
        ("Vendor Name", "AMD"),
        ("Device Type", "GPU"),
        ("Max Clock Freq. (MHz)", device.clock_khz // 1000),
        ("Compute Unit", device.spec.compute_units),
        ("Wavefront Size", f"{device.spec.wavefront}({device.spec.wavefront:#x})"),
    ]
    facts = "".join(f"\n  {name + ':':<25}{value}" for name, value in lines)
    isa = f"\n  ISA Info:\n    ISA 1\n      Name: amdgcn-amd-amdhsa--{device.full_arch}"
    return f"{_RULE}\nAgent 1\n{_RULE}{facts}{isa}"
