"""GPUs in the registry of backends: `cuda:0`, `rocm:0`, through PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernel_gym.devices.registry import Backend, DeviceStatus
from kernel_gym.records import Clock

if TYPE_CHECKING:
    import torch

    from kernel_gym.devices.description import DeviceDescription
    from kernel_gym.devices.gpu.device import GpuDevice

MAX_WORKERS = 6
"""More evaluators on one GPU wait for each other and hold memory (docs/decisions/0019)."""
WORKER_BYTES = 14 << 30
"""Memory of the GPU for each evaluator on it, beside the memory that it shares with workers."""


class GpuBackend(Backend):
    """The GPUs that this build of PyTorch sees."""

    name = "gpu"
    pattern = r"(?:rocm|cuda):\d{1,3}"
    usage = "GPUs as rocm:0 or cuda:0"
    preference = 20
    ray_gpus = True
    admission_seconds = 240.0

    def present(self) -> Sequence[str]:
        """Returns a name for each GPU that PyTorch sees."""
        import torch

        from kernel_gym.devices.gpu.vendors import vendor_here

        return tuple(f"{vendor_here().name}:{i}" for i in range(torch.cuda.device_count()))

    def describe(self, name: str) -> DeviceDescription:
        """Describes a GPU by what the driver reports and by its data sheet.

        Raises:
            InfraError: There is no data sheet for the GPU.
        """
        from kernel_gym.devices.gpu.vendors import describe_gpu

        return describe_gpu(name, _properties(name))

    def status(self, name: str) -> DeviceStatus:
        """Says whether candidates can be recorded and kept apart, and the data sheet is known."""
        import torch

        from kernel_gym.devices.gpu.vendors import (
            arch_name,
            data_sheet,
            gpu_file,
            languages_of,
            missing_compiler,
            uuid_of,
            vendor_here,
        )
        from kernel_gym.torch_device.build import missing

        vendor, properties = vendor_here(), _properties(name)
        problems, fixes = [], []
        if torch.cuda.device_count() > 1 and not gpu_file(vendor, uuid_of(properties)):
            problems.append(
                "candidates can open the other GPUs: the system does not say which device file "
                "belongs to which GPU"
            )
            fixes.append("give each process a container with one GPU")
        known = data_sheet(properties.name) is not None
        if not known:
            problems.append(f"the peak rates of a {properties.name} are not known")
            fixes.append("add its data sheet to kernel_gym/devices/gpu/vendors.py")
        if lacks := missing():
            problems.append(f"candidates cannot be recorded: {lacks[0]}")
            fixes.append(lacks[1])
        arch = arch_name(vendor, properties)
        if compiler := missing_compiler(vendor, arch):
            problems.append(f"HIP tasks are skipped: {compiler.problem}")
            fixes.append(compiler.fix)
        usable = known and lacks is None
        languages = languages_of(vendor, arch)
        return DeviceStatus(
            name, arch, Clock.MEASURED, usable, languages, tuple(problems), tuple(fixes)
        )

    def open(self, name: str) -> GpuDevice:
        """Opens a GPU: makes a context and allocates the memory that workers share.

        Raises:
            InfraError: The GPU cannot be used.
        """
        from kernel_gym.devices.gpu.device import open_gpu

        return open_gpu(name)

    def default_workers(self, name: str, cpus: int) -> int:
        """One evaluator for each CPU, up to six, and no more than the GPU's memory holds."""
        from kernel_gym.devices.gpu.shared_memory import arena_bytes

        memory = int(_properties(name).total_memory)
        return max(1, min(cpus, MAX_WORKERS, memory // (WORKER_BYTES + arena_bytes())))

    def absence(self, present: Sequence[str]) -> str:
        """Says which GPUs PyTorch sees."""
        return f"the GPUs here are {', '.join(present)}" if present else "PyTorch sees no GPU here"


def _properties(name: str) -> torch.cuda._CudaDeviceProperties:
    """Returns what the driver reports about a GPU; makes no context on it."""
    import torch

    return torch.cuda.get_device_properties(int(name.partition(":")[2]))
