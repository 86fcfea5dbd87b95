"""The differences between AMD's and NVIDIA's GPUs, as data. All other code is the same for both.

Tests on NVIDIA's GPUs say something about AMD's only where the code is the same, so a branch on the
vendor anywhere else is a mistake.
"""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from kernel_gym.devices.base import InfraError
from kernel_gym.devices.description import DeviceDescription, TimingMethod
from kernel_gym.devices.gpu.shared_memory import arena_bytes
from kernel_gym.devices.sim.toolchain import MissingToolchain, hip_toolchain
from kernel_gym.hardware import MI300X, DeviceSpec
from kernel_gym.records import Clock
from kernel_gym.tasks.embedded import installed_extras
from kernel_gym.tasks.problem import Scale


@dataclass(frozen=True)
class Vendor:
    """A vendor's runtime and compiler."""

    name: str
    """Prefix of device names: "cuda" or "rocm"."""
    library: str
    """A part of the runtime library's file name."""
    visible: tuple[str, ...]
    """Environment variables that select devices."""
    environment: tuple[tuple[str, str], ...]
    """Environment variables of a worker. With two hardware queues instead of eight, NVIDIA's driver
    creates several contexts at once in half the time."""
    device_files: tuple[str, ...]
    """Device files that a process opens to use any GPU."""
    gpu_files: str
    """The pattern of the device files that belong to one GPU each."""
    information: str
    """Where the driver says which device file belongs to which GPU. Empty if the runtime fails, or
    may fail, when it cannot open the file of another GPU."""
    wavefront: int
    backend: str
    """Triton's name of the compiler backend."""
    some_arch: str | int
    """An architecture that Triton can compile for without a GPU of that kind."""
    languages: tuple[str, ...]
    """The languages of candidates that become plans."""


CUDA = Vendor(
    name="cuda",
    library="libcudart.so",
    visible=("CUDA_VISIBLE_DEVICES",),
    environment=(("CUDA_DEVICE_MAX_CONNECTIONS", "2"),),
    device_files=("/dev/nvidiactl", "/dev/nvidia-uvm*"),
    gpu_files="/dev/nvidia[0-9]*",
    information="proc/driver/nvidia/gpus/*/information",
    wavefront=32,
    backend="cuda",
    some_arch=90,
    languages=("triton",),
)
ROCM = Vendor(
    name="rocm",
    library="libamdhip64.so",
    visible=("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    environment=(),
    device_files=("/dev/kfd",),
    gpu_files="/dev/dri/renderD*",
    information="",
    wavefront=64,
    backend="hip",
    some_arch="gfx942",
    languages=("triton", "hip"),
)


def vendor_here() -> Vendor:
    """Returns the vendor that this build of PyTorch is for; a CPU build counts as CUDA."""
    return ROCM if torch.version.hip else CUDA


def device_files(vendor: Vendor, own: str = "") -> tuple[str, ...]:
    """Returns the device files of this machine that a worker needs.

    Args:
        vendor: The vendor of the GPUs.
        own: The device file of the worker's GPU. If it is empty, those of all GPUs are returned.
    """
    gpus = [own] if own else glob.glob(vendor.gpu_files)
    common = (path for pattern in vendor.device_files for path in glob.glob(pattern))
    return tuple(sorted((*common, *gpus)))


def uuid_of(properties: object) -> str:
    """Returns a GPU's UUID, as `CUDA_VISIBLE_DEVICES` takes it; empty if PyTorch does not know it.

    Args:
        properties: The result of `torch.cuda.get_device_properties`.
    """
    uuid = getattr(properties, "uuid", "")
    return f"GPU-{uuid}" if uuid else ""


def gpu_file(vendor: Vendor, uuid: str, root: str = "/") -> str:
    """Returns the device file of one GPU.

    Args:
        vendor: The vendor of the GPU.
        uuid: The GPU's UUID, see `uuid_of`.
        root: The root of the file system.

    Returns:
        The path; empty if the system does not say it, and for a partition of a GPU.
    """
    if not vendor.information:
        return ""
    for path in Path(root).glob(vendor.information):
        text = path.read_text(encoding="utf-8")
        fields = dict(re.findall(r"^([^:\n]+):[ \t]*(.*?)[ \t]*$", text, re.MULTILINE))
        if fields.get("GPU UUID") == uuid and "Device Minor" in fields:
            return vendor.gpu_files.replace("[0-9]*", fields["Device Minor"])
    return ""


def arch_name(vendor: Vendor, properties: object) -> str:
    """Returns the compiler's name of an architecture: `gfx942`, `sm_90a`.

    Args:
        vendor: The vendor of the GPU.
        properties: The result of `torch.cuda.get_device_properties`.
    """
    if vendor is ROCM:
        return str(properties.gcnArchName).split(":")[0]  # type: ignore[attr-defined]
    major, minor = properties.major, properties.minor  # type: ignore[attr-defined]
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def missing_compiler(vendor: Vendor, arch: str) -> MissingToolchain | None:
    """Returns why a GPU takes no candidates in HIP; None if it does, or if its vendor has no HIP.

    Args:
        vendor: The vendor of the GPU.
        arch: The compiler's name of its architecture.
    """
    chain = hip_toolchain(arch) if "hip" in vendor.languages else None
    return chain if isinstance(chain, MissingToolchain) else None


def languages_of(vendor: Vendor, arch: str) -> tuple[str, ...]:
    """Returns the languages of candidates on a GPU: those of its vendor that can be built here."""
    missing = missing_compiler(vendor, arch)
    return tuple(one for one in vendor.languages if one != "hip" or missing is None)


def selecting(vendor: Vendor, properties: object, index: int) -> dict[str, str]:
    """Returns the variables by which a launcher sees one GPU alone, and configures its driver.

    Args:
        vendor: The vendor of the GPU.
        properties: The result of `torch.cuda.get_device_properties`.
        index: Its number in this process.
    """
    seen = {}
    for variable in vendor.visible:
        chosen = [part for part in os.environ.get(variable, "").split(",") if part]
        seen[variable] = chosen[index] if index < len(chosen) else str(index)
    if vendor is CUDA and uuid_of(properties):
        seen = dict.fromkeys(vendor.visible, uuid_of(properties))
    return seen | dict(vendor.environment)


def reported(vendor: Vendor, properties: object) -> dict[str, Any]:
    """Returns a GPU's properties as data, for processes that have not opened the GPU.

    Args:
        vendor: The vendor of the GPU.
        properties: The result of `torch.cuda.get_device_properties`.

    Returns:
        The properties by name, and `arch`, `hip` (the version, or None), `target` (backend,
        architecture and lanes of a wavefront, as Triton takes them) and `shared_memory` (bytes).
    """
    names = [name for name in dir(properties) if not name.startswith("_")]
    values = {name: getattr(properties, name) for name in names}
    known: dict[str, Any] = {name: v for name, v in values.items() if isinstance(v, int | str)}
    arch = arch_name(vendor, properties)
    triton_arch = arch if vendor is ROCM else 10 * known["major"] + known["minor"]
    least = known.get("shared_memory_per_block", 48 << 10)
    return (
        {"L2_cache_size": 0}
        | known
        | {
            "arch": arch,
            "hip": torch.version.hip,
            "warp_size": vendor.wavefront,
            "target": [vendor.backend, triton_arch, vendor.wavefront],
            "shared_memory": known.get("shared_memory_per_block_optin", least),
        }
    )


_H200 = DeviceSpec(
    name="NVIDIA H200",
    arch="sm_90a",
    memory_bandwidth=4.8e12,
    matrix_rate={
        torch.float16: 989.4e12,
        torch.bfloat16: 989.4e12,
        torch.float8_e4m3fn: 1978.9e12,
        torch.float8_e5m2: 1978.9e12,
        torch.int8: 1978.9e12,
    },
    vector_rate=67e12,
    compute_units=132,
    lds_bytes=228 * 1024,
    wavefront=32,
    flush_bytes=128 << 20,
)
_H100 = replace(_H200, name="NVIDIA H100", memory_bandwidth=3.35e12)
_MI325X = replace(MI300X, name="AMD Instinct MI325X", memory_bandwidth=6.0e12)

DATA_SHEETS: tuple[tuple[str, DeviceSpec], ...] = (
    ("H200", _H200),
    ("H100", _H100),
    ("MI300X", MI300X),
    ("MI325X", _MI325X),
)
"""Dense peak rates from data sheets, by a part of the name that the runtime reports."""


def data_sheet(name: str) -> DeviceSpec | None:
    """Returns the peak rates of a GPU by its reported name, or None if they are not known."""
    return next((spec for part, spec in DATA_SHEETS if part in name), None)


def describe_gpu(name: str, properties: torch.cuda._CudaDeviceProperties) -> DeviceDescription:
    """Describes a GPU; makes no context on it.

    Args:
        name: The device name, `cuda:N` or `rocm:N`.
        properties: The result of `torch.cuda.get_device_properties`.

    Raises:
        InfraError: There is no data sheet for the GPU.
    """
    spec, vendor = data_sheet(properties.name), vendor_here()
    if spec is None:
        raise InfraError(
            f"{name} is a {properties.name}, whose peak rates are not known; add its data sheet to "
            "kernel_gym/devices/gpu/vendors.py"
        )
    arch = arch_name(vendor, properties)
    languages = languages_of(vendor, arch)
    return DeviceDescription(
        name=name,
        hardware=spec.name,
        spec=spec,
        clock=Clock.MEASURED,
        timing=TimingMethod.PAIRED,
        scale=Scale.FULL,
        languages=languages,
        embedded=installed_extras(has_hip=True) if "hip" in languages else (),
        facts=_facts(vendor, spec, arch),
        torch_device=torch.device("cuda", int(name.partition(":")[2])),
        arch=arch,
        total_memory=int(properties.total_memory),
        shared_memory=arena_bytes(),
    )


def _facts(vendor: Vendor, spec: DeviceSpec, arch: str) -> str:
    unit = "compute units" if vendor.wavefront == 64 else "multiprocessors"
    lanes = "wavefronts" if vendor.wavefront == 64 else "warps"
    tera = spec.matrix_rate[torch.float16] / 1e12
    return (
        f"{spec.name} ({arch}): {spec.compute_units} {unit}, {lanes} of "
        f"{spec.wavefront} lanes, {spec.lds_bytes // 1024} KiB shared memory each, "
        f"{spec.memory_bandwidth / 1e12:.2f} TB/s memory, {tera:.0f} TFLOP/s fp16/bf16 matrix, "
        f"{spec.vector_rate / 1e12:.0f} TFLOP/s fp32 vector."
    )
