"""What differs between AMD's and NVIDIA's GPUs, as data: everything else is one code over torch.

The CUDA path proves the ROCm path only as far as nothing else tells them apart, so that a branch on
the vendor anywhere but here is a mistake.
"""

from __future__ import annotations

import glob
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from kernel_gym.hardware import MI300X, DeviceSpec

HEADERS = Path(__file__).parents[2] / "worker" / "hip" / "hip_on_cuda"
"""Our HIP headers for NVIDIA's compiler."""


@dataclass(frozen=True)
class Vendor:
    """One maker's runtime and compiler."""

    name: str
    """Prefix of device names: "cuda" or "rocm"."""
    prefix: str
    """Of the runtime's functions: `cudaMalloc`, `hipMalloc`."""
    library: str
    """A part of the runtime library's file name."""
    range_symbol: tuple[str, str]
    """Library and name of the function that finds the allocation an address is in."""
    visible: tuple[str, ...]
    """Environment variables that choose devices."""
    environment: tuple[tuple[str, str], ...]
    """Variables of a worker. With two hardware queues instead of eight NVIDIA's driver makes a few
    contexts in half the time; evaluations wait for each other's."""
    device_files: tuple[str, ...]
    """What a process opens to use a GPU, whichever it is ..."""
    gpu_files: str
    """... and what is there for each of them."""
    information: str
    """Where the driver says which of these files belongs to which GPU. Empty where a runtime that
    finds one closed fails, or is not known to leave that GPU out."""
    compiler: str
    compiler_folder: str
    """Where the compiler is when it is not on the path."""
    suffix: str
    """By which the compiler knows a HIP source."""
    wavefront: int
    launch_symbols: tuple[str, ...]
    """The functions that launch kernels or graphs; the worker counts launches there."""
    backend: str
    """Triton's name of what compiles for it ..."""
    driver: str
    """... and of what drives it."""
    some_arch: str | int
    """An architecture that Triton compiles for, whatever GPU is here."""

    def compile_command(self, compiler: str, arch: str) -> list[str]:
        """Compiler and options that make a shared object from a HIP source; files follow."""
        wraps = [f"--wrap={symbol}" for symbol in self.launch_symbols]
        if self.name == "rocm":
            options = [f"--offload-arch={arch}", "-fPIC", "-w", "-ferror-limit=5"]
            options += ["-Rpass-analysis=kernel-resource-usage"]
            return [compiler, "-O3", "-std=c++17", "-shared", *options, *_linker("-Wl,", wraps)]
        options = [f"-arch={arch}", "-Xcompiler", "-fPIC", "-w", "-Xptxas", "-v"]
        options += ["-cudart", "shared", "-I", str(HEADERS)]
        linker = [part for wrap in wraps for part in ("-Xlinker", wrap)]
        return [compiler, "-O3", "-std=c++17", "-shared", *options, *linker]


def _linker(prefix: str, options: list[str]) -> list[str]:
    return [prefix + option for option in options]


CUDA = Vendor(
    name="cuda",
    prefix="cuda",
    library="libcudart.so",
    range_symbol=("libcuda.so", "cuMemGetAddressRange_v2"),
    visible=("CUDA_VISIBLE_DEVICES",),
    environment=(("CUDA_DEVICE_MAX_CONNECTIONS", "2"),),
    device_files=("/dev/nvidiactl", "/dev/nvidia-uvm*"),
    gpu_files="/dev/nvidia[0-9]*",
    information="proc/driver/nvidia/gpus/*/information",
    compiler="nvcc",
    compiler_folder="/usr/local/cuda/bin",
    suffix=".cu",
    wavefront=32,
    launch_symbols=(
        "cudaLaunchKernel",
        "__cudaLaunchKernel",
        "cudaLaunchCooperativeKernel",
        "cudaLaunchKernelExC",
        "cudaGraphLaunch",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "cuLaunchCooperativeKernel",
        "cuGraphLaunch",
    ),
    backend="cuda",
    driver="nvidia",
    some_arch=90,
)
ROCM = Vendor(
    name="rocm",
    prefix="hip",
    library="libamdhip64.so",
    range_symbol=("libamdhip64.so", "hipMemGetAddressRange"),
    visible=("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    environment=(),
    device_files=("/dev/kfd",),
    gpu_files="/dev/dri/renderD*",
    information="",
    compiler="hipcc",
    compiler_folder="/opt/rocm/bin",
    suffix=".hip",
    wavefront=64,
    launch_symbols=(
        "hipLaunchKernel",
        "hipLaunchCooperativeKernel",
        "hipLaunchKernelExC",
        "hipGraphLaunch",
        "hipModuleLaunchKernel",
        "hipModuleLaunchCooperativeKernel",
        "hipDrvLaunchKernelEx",
        "hipExtLaunchKernel",
        "hipExtModuleLaunchKernel",
    ),
    backend="hip",
    driver="amd",
    some_arch="gfx942",
)


def vendor_here() -> Vendor:
    """The vendor that this build of PyTorch is for; without a GPU build, CUDA."""
    return ROCM if torch.version.hip else CUDA


def device_files(vendor: Vendor, own: str = "") -> tuple[str, ...]:
    """The device files of this machine that a worker needs.

    Args:
        vendor: whose.
        own: its GPU's; without it those of all GPUs.
    """
    gpus = [own] if own else glob.glob(vendor.gpu_files)
    common = (path for pattern in vendor.device_files for path in glob.glob(pattern))
    return tuple(sorted((*common, *gpus)))


def uuid_of(properties: object) -> str:
    """A GPU's own name, as `CUDA_VISIBLE_DEVICES` takes it; empty where PyTorch does not tell.

    Args:
        properties: what `torch.cuda.get_device_properties` says.
    """
    found = getattr(properties, "uuid", "")
    return f"GPU-{found}" if found else ""


def gpu_file(vendor: Vendor, uuid: str, root: str = "/") -> str:
    """The device file of one GPU; empty where the system does not say, and for a part of one.

    Args:
        vendor: whose.
        uuid: its own name, see `uuid_of`.
        root: where the files of the system are.
    """
    if not vendor.information:
        return ""
    for path in Path(root).glob(vendor.information):
        text = path.read_text(encoding="utf-8")
        found = dict(re.findall(r"^([^:\n]+):[ \t]*(.*?)[ \t]*$", text, re.MULTILINE))
        if found.get("GPU UUID") == uuid and "Device Minor" in found:
            return vendor.gpu_files.replace("[0-9]*", found["Device Minor"])
    return ""


def find_compiler(vendor: Vendor) -> str | None:
    """Path of the vendor's HIP compiler."""
    return shutil.which(vendor.compiler) or shutil.which(
        str(Path(vendor.compiler_folder) / vendor.compiler)
    )


def arch_name(vendor: Vendor, properties: object) -> str:
    """The compiler's name of an architecture: `gfx942`, `sm_90a`.

    Args:
        vendor: whose device it is.
        properties: what `torch.cuda.get_device_properties` says.
    """
    if vendor is ROCM:
        return str(properties.gcnArchName).split(":")[0]  # type: ignore[attr-defined]
    major, minor = properties.major, properties.minor  # type: ignore[attr-defined]
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def reported(vendor: Vendor, properties: object) -> dict[str, Any]:
    """What a GPU says of itself, as data for processes that have not opened it.

    Args:
        vendor: whose device it is.
        properties: what `torch.cuda.get_device_properties` says.

    Returns:
        These properties by name, and `arch`, `hip` (the version, or None), `target` (backend,
        architecture and lanes of a wavefront, as Triton takes them) and `shared_memory` (bytes).
    """
    names = [name for name in dir(properties) if not name.startswith("_")]
    values = {name: getattr(properties, name) for name in names}
    found: dict[str, Any] = {name: v for name, v in values.items() if isinstance(v, int | str)}
    arch = arch_name(vendor, properties)
    triton_arch = arch if vendor is ROCM else 10 * found["major"] + found["minor"]
    least = found.get("shared_memory_per_block", 48 << 10)
    return (
        {"L2_cache_size": 0}
        | found
        | {
            "arch": arch,
            "hip": torch.version.hip,
            "warp_size": vendor.wavefront,
            "target": [vendor.backend, triton_arch, vendor.wavefront],
            "shared_memory": found.get("shared_memory_per_block_optin", least),
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
"""Dense peaks from the makers' data sheets, by a part of the name that the runtime reports."""


def data_sheet(name: str) -> DeviceSpec | None:
    """The peaks of a device by its reported name; None when none are known."""
    return next((spec for part, spec in DATA_SHEETS if part in name), None)
