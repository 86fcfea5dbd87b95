"""Finds the compiler of HIP candidates for the simulator, or says what to install."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

OLDEST_CLANG = 17
_CANDIDATES = (
    *("clang++-20", "clang++-19", "clang++-18", "clang++-17", "clang++"),
    "/opt/rocm/llvm/bin/clang++",
)
_BITCODE_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode",
    "/usr/lib/aarch64-linux-gnu/amdgcn/bitcode",
    "/opt/rocm/amdgcn/bitcode",
    "/usr/amdgcn/bitcode",
)
_HEADER_FOLDERS = ("/usr/include", "/opt/rocm/include")
_LIBRARIES = (
    "ocml",
    "ockl",
    "hip",  # older ROCm has parts of the runtime library here
    "oclc_abi_version_500",
    "oclc_correctly_rounded_sqrt_on",
    "oclc_daz_opt_off",
    "oclc_finite_only_off",
    "oclc_unsafe_math_off",
    "oclc_wavefrontsize64_on",
)
_ISA_LIBRARIES = {
    "gfx90a": ("90a",),
    "gfx942": ("942", "940", "90a"),
    "gfx950": ("950", "942", "940"),
}
"""Names of the library with the target's version number. An older target's library works too."""
_OLDEST_FOR = {"gfx950": 20}
"""Targets that need a newer compiler."""
FIX = "apt-get install clang-19 lld-19 rocm-device-libs libamdhip64-dev"


@dataclass(frozen=True)
class HipToolchain:
    """The compiler of HIP, and its two commands for candidates without input and output files.

    Attributes:
        version: Of the compiler.
        device: The command for the device side.
        host: The command for the host side.
        clang: The compiler.
        arch: The target.
        headers: The folder that holds `hip/hip_runtime.h`.
        bitcode: The folder of ROCm's device libraries.
        isa: The name of the device library with the number of the target.
    """

    version: str
    device: tuple[str, ...]
    host: tuple[str, ...]
    clang: str
    arch: str
    headers: Path
    bitcode: Path
    isa: str


@dataclass(frozen=True)
class MissingToolchain:
    """Why HIP candidates cannot be built here, and the line that fixes it."""

    problem: str
    fix: str = FIX


@functools.cache
def hip_toolchain(arch: str = "gfx942") -> HipToolchain | MissingToolchain:
    """Finds the clang that builds HIP for `arch` and for the host, with ROCm's device libraries."""
    if arch not in _ISA_LIBRARIES:
        known = ", ".join(_ISA_LIBRARIES)
        return MissingToolchain(
            f"HIP is not built for {arch}", f"use a GPU that is one of: {known}"
        )
    compiler = _find_clang()
    if compiler is None:
        return MissingToolchain(f"no clang++ {OLDEST_CLANG} or newer")
    clang, version = compiler
    needed = _OLDEST_FOR.get(arch, OLDEST_CLANG)
    if int(version.partition(".")[0]) < needed:
        fix = FIX.replace("-19", f"-{needed}")
        return MissingToolchain(f"clang++ {version} has no {arch}, {needed} or newer has", fix)
    headers = _first_folder(_HEADER_FOLDERS, "hip/hip_runtime.h")
    if headers is None:
        return MissingToolchain("no HIP headers (hip/hip_runtime.h)")
    bitcode = _first_folder(_BITCODE_FOLDERS, "ocml.bc")
    if bitcode is None:
        return MissingToolchain("no ROCm device libraries (ocml.bc)")
    versions = [f"oclc_isa_version_{version}" for version in _ISA_LIBRARIES[arch]]
    isa = next((name for name in versions if (bitcode / f"{name}.bc").exists()), None)
    if isa is None:
        return MissingToolchain(f"no ROCm device library {versions[0]}.bc for {arch}")
    common: tuple[str, ...] = (
        clang,
        "-x",
        "hip",
        f"--offload-arch={arch}",
        "-std=c++17",
        "-w",
        "-ferror-limit=5",
        "-fuse-cuid=none",
    )
    common += (f"--rocm-path={headers.parent}",)
    link: tuple[str, ...] = ()
    libraries = [name for name in (*_LIBRARIES, isa) if (bitcode / f"{name}.bc").exists()]
    for name in libraries:
        link += ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(bitcode / f"{name}.bc"))
    # The text must not depend on the folder of the build: it identifies the machine code.
    lines = ("-gline-tables-only", "-fdebug-compilation-dir=.")
    device = (*common, "-O3", "-nogpulib", *link, *lines, "--cuda-device-only", "-S")
    host = (*common, "-O1", "--cuda-host-only", "-fPIC", "-shared")
    return HipToolchain(version, device, host, clang, arch, headers, bitcode, isa)


def _find_clang() -> tuple[str, str] | None:
    for name in _CANDIDATES:
        path = shutil.which(name)
        if path is None:
            continue
        text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        match = re.search(r"version (\d+)[\d.]*", text)
        if match and int(match.group(1)) >= OLDEST_CLANG:
            return path, match.group(0).removeprefix("version ")
    return None


def _first_folder(folders: tuple[str, ...], file: str) -> Path | None:
    return next((Path(f) for f in folders if (Path(f) / file).exists()), None)
