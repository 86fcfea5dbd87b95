"""The simulator in the registry of backends: `sim:gfx942` and the other simulated devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernel_gym.devices.registry import Backend, DeviceStatus
from kernel_gym.devices.sim.toolchain import MissingToolchain, hip_toolchain
from kernel_gym.records import Clock
from kernel_gym.sim.asm import disassembler
from kernel_gym.sim.asm.targets import TARGETS
from kernel_gym.torch_device.build import missing

if TYPE_CHECKING:
    from kernel_gym.devices.description import DeviceDescription
    from kernel_gym.devices.sim.device import SimDevice

NAMES = ("sim:gfx942", "sim:gfx90a", "sim:gfx950")
"""The default first. The data sheets are in `kernel_gym.hardware`, which loads PyTorch."""
MAX_WORKERS = 8


class SimBackend(Backend):
    """Simulated AMD GPUs. They exist on every machine, and nobody waits for them."""

    name = "sim"
    pattern = "|".join(NAMES)
    fixed_names = NAMES
    preference = 10
    threads = True
    full_size = False
    deterministic = True

    def present(self) -> Sequence[str]:
        """Returns all simulated devices."""
        return NAMES

    def describe(self, name: str) -> DeviceDescription:
        """Describes a simulated device."""
        from kernel_gym.devices.sim.device import describe_simulated

        return describe_simulated(arch_of(name))

    def status(self, name: str) -> DeviceStatus:
        """Says whether a simulated device works here, and whether it can build HIP candidates."""
        lacks = missing()
        if lacks is not None:
            problem, fix = lacks
            text = f"the device for PyTorch cannot be built: {problem}"
            return DeviceStatus(name, arch_of(name), Clock.MODELLED, False, (), (text,), (fix,))
        arch = arch_of(name)
        problems, fixes = [], []
        toolchain = hip_toolchain(arch)
        languages: tuple[str, ...] = ("triton", "hip")
        if isinstance(toolchain, MissingToolchain):
            languages = ("triton",)
            problems.append(f"HIP tasks are skipped: {toolchain.problem}")
            fixes.append(toolchain.fix)
        if not disassembler.knows(arch):
            version = TARGETS[arch].disassembler
            problems.append(f"code objects cannot be loaded: no LLVM {version} or newer")
            fixes.append(disassembler.fix_for(arch))
        return DeviceStatus(
            name, arch, Clock.MODELLED, True, languages, tuple(problems), tuple(fixes)
        )

    def open(self, name: str) -> SimDevice:
        """Opens a simulated device."""
        from kernel_gym.devices.sim.device import SimDevice

        return SimDevice(arch=arch_of(name))

    def default_workers(self, name: str, cpus: int) -> int:
        """One evaluator for each CPU, up to eight."""
        return min(cpus, MAX_WORKERS)


def arch_of(name: str) -> str:
    """Returns the architecture in a simulated device's name."""
    return name.partition(":")[2]
