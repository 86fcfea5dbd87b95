"""Where kernels run: names, detection, and what each device can do here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kernel_gym.devices.sim.toolchain import MissingToolchain, hip_toolchain
from kernel_gym.errors import InputError
from kernel_gym.records import Clock
from kernel_gym.tasks.near_names import near_names

__all__ = [
    "DeviceStatus",
    "UnknownDevice",
    "describe_devices",
    "device_names",
    "require_device",
    "resolve",
]

SIMULATED_NAMES = ("sim:gfx942", "sim:gfx90a", "sim:gfx950")
_GPU_NAME = re.compile(r"(?:rocm|cuda):\d{1,3}")
SIMULATED = SIMULATED_NAMES[0]
"""The default; what they are is in `kernel_gym.hardware`, which loads PyTorch."""


class UnknownDevice(InputError, KeyError):
    """No device of that name; the message lists near matches."""

    def __str__(self) -> str:
        """The message itself, without a KeyError's quotes."""
        return str(self.args[0])


@dataclass(frozen=True)
class DeviceStatus:
    """What a device can do on this machine."""

    name: str
    arch: str
    clock: Clock
    usable: bool
    languages: tuple[str, ...]
    problems: tuple[str, ...] = ()
    mends: tuple[str, ...] = ()


def device_names() -> tuple[str, ...]:
    """Names that :func:`resolve` takes."""
    return ("auto", *SIMULATED_NAMES, *gpu_names())


def gpu_names() -> tuple[str, ...]:
    """The GPUs that PyTorch sees here: `rocm:0`, `cuda:0` ..."""
    import torch

    from kernel_gym.devices.gpu.vendors import vendor_here

    return tuple(f"{vendor_here().name}:{i}" for i in range(torch.cuda.device_count()))


def arch_of(name: str) -> str:
    """The architecture of a device by its full name, e.g. gfx942 or sm_90a."""
    if name in SIMULATED_NAMES:
        return name.partition(":")[2]
    from kernel_gym.devices.gpu.vendors import arch_name, vendor_here

    return arch_name(vendor_here(), _properties(name))


def memory_of(name: str) -> int:
    """Bytes of a GPU's memory."""
    return int(_properties(name).total_memory)


def hardware_of(name: str) -> str:
    """What a device is, whatever its number here: `NVIDIA H200`, or a simulated one's own name."""
    if name in SIMULATED_NAMES:
        return name
    from kernel_gym.devices.gpu.vendors import data_sheet

    reported = _properties(name).name
    found = data_sheet(reported)
    return found.name if found else reported


def _properties(gpu: str) -> Any:
    """What PyTorch reports of a GPU, by its full name."""
    import torch

    return torch.cuda.get_device_properties(int(gpu.partition(":")[2]))


def describe_devices() -> tuple[DeviceStatus, ...]:
    """The status of every device on this machine."""
    return (*map(_describe_simulated, SIMULATED_NAMES), *map(_describe_gpu, gpu_names()))


def _describe_gpu(name: str) -> DeviceStatus:
    import torch

    from kernel_gym.devices.gpu.vendors import (
        arch_name,
        data_sheet,
        find_compiler,
        gpu_file,
        uuid_of,
        vendor_here,
    )

    vendor, found = vendor_here(), _properties(name)
    arch = arch_name(vendor, found)
    problems, mends = [], []
    if find_compiler(vendor) is None:
        problems.append(f"HIP tasks are skipped: no {vendor.compiler}")
        mends.append(f"put {vendor.compiler} on the path")
    if torch.cuda.device_count() > 1 and not gpu_file(vendor, uuid_of(found)):
        problems.append("candidates can open the other GPUs: which file is whose is not told")
        mends.append("give each process a container with one GPU")
    known = data_sheet(found.name) is not None
    if not known:
        problems.append(f"no peaks are known of a {found.name}")
        mends.append("add its data sheet to kernel_gym/devices/gpu/vendors.py")
    languages = ("triton",) if find_compiler(vendor) is None else ("triton", "hip")
    return DeviceStatus(name, arch, Clock.MEASURED, known, languages, tuple(problems), tuple(mends))


def _describe_simulated(name: str) -> DeviceStatus:
    arch = name.partition(":")[2]
    missing = hip_toolchain(arch)
    languages: tuple[str, ...] = ("triton", "hip")
    problems: tuple[str, ...] = ()
    mends: tuple[str, ...] = ()
    if isinstance(missing, MissingToolchain):
        languages = ("triton",)
        problems = (f"HIP tasks are skipped: {missing.problem}",)
        mends = (missing.mend,)
    return DeviceStatus(name, arch, Clock.MODELLED, True, languages, problems, mends)


def require_device(name: str) -> None:
    """Does nothing when a device may have that name; looks for no GPU, which loads PyTorch.

    Raises:
        UnknownDevice: None has such a name; the message lists near ones.
    """
    known = ("auto", *SIMULATED_NAMES)
    if name not in known and not _GPU_NAME.fullmatch(name):
        near = near_names(name, known)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        names = f"{', '.join(known)}, and GPUs as rocm:0 or cuda:0"
        raise UnknownDevice(f"unknown device {name!r}; known: {names}{hint}")


def resolve(name: str) -> str:
    """The full name of a device; `auto` is the best one here.

    Raises:
        UnknownDevice: no such device.
    """
    require_device(name)
    if name in SIMULATED_NAMES:
        return name
    gpus = gpu_names()
    if name == "auto":
        return gpus[0] if gpus else SIMULATED
    if name in gpus:
        return name
    seen = f"the GPUs here are {', '.join(gpus)}" if gpus else "PyTorch sees no GPU here"
    raise UnknownDevice(f"unknown device {name!r}: {seen}; `kernel-gym doctor` says what there is")
