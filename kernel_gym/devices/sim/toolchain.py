"""Finds the compiler of HIP candidates for the simulator, or says what to install."""

from __future__ import annotations

import functools
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.devices.sim.compiler_versions import version_text
from kernel_gym.sim.llvm_packages import CLANG_FOLDER, USUAL, packaged_llvm

OLDEST_CLANG = 17
_CANDIDATES = (
    *("clang++-20", "clang++-19", "clang++-18", "clang++-17", "clang++"),
    "/opt/rocm/llvm/bin/clang++",
    *("clang++-22", "clang++-21"),
)
"""Compilers, those that come first are preferred. Another compiler makes other machine code."""
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
FIX = f"apt-get install clang-{USUAL} lld-{USUAL} rocm-device-libs libamdhip64-dev"
_DECLARATIONS = "__clang_hip_libdevice_declares.h"
_GONE = "__llvm_amdgcn_rcp_f16"
_FOR_HIP_5 = ("-D__AMDGCN_WAVEFRONT_SIZE=64", "-mcode-object-version=5")
"""Options without which clang 22 does otherwise than HIP 5 and its device libraries expect."""


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
        older: Options for headers and device libraries that are older than the compiler; empty
            where it needs none.
    """

    version: str
    device: tuple[str, ...]
    host: tuple[str, ...]
    clang: str
    arch: str
    headers: Path
    bitcode: Path
    isa: str
    older: tuple[str, ...]


@dataclass(frozen=True)
class MissingToolchain:
    """Why HIP candidates cannot be built here, and the line that fixes it."""

    problem: str
    fix: str = FIX


@functools.cache
def hip_toolchain(arch: str = "gfx942", folder: str = "") -> HipToolchain | MissingToolchain:
    """Finds the clang that builds HIP for `arch` and for the host, with ROCm's device libraries.

    Args:
        arch: The target.
        folder: The folder of the compiler; empty: the first compiler that is new enough.
    """
    if arch not in _ISA_LIBRARIES:
        known = ", ".join(_ISA_LIBRARIES)
        return MissingToolchain(
            f"HIP is not built for {arch}", f"use a GPU that is one of: {known}"
        )
    needed = _OLDEST_FOR.get(arch, OLDEST_CLANG)
    compiler = find_clang(needed, folder)
    if compiler is None:
        return _no_clang(arch, needed, folder)
    clang, version = compiler
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
    older = _for_older(clang)
    common += (f"--rocm-path={headers.parent}", *older)
    link: tuple[str, ...] = ()
    libraries = [name for name in (*_LIBRARIES, isa) if (bitcode / f"{name}.bc").exists()]
    for name in libraries:
        link += ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(bitcode / f"{name}.bc"))
    # The text must not depend on the folder of the build: it identifies the machine code.
    lines = ("-gline-tables-only", "-fdebug-compilation-dir=.")
    device = (*common, "-O3", "-nogpulib", *link, *lines, "--cuda-device-only", "-S")
    host = (*common, "-O1", "--cuda-host-only", "-fPIC", "-shared")
    return HipToolchain(version, device, host, clang, arch, headers, bitcode, isa, older)


def find_clang(needed: int, folder: str = "") -> tuple[str, str] | None:
    """Returns the path and the version of the first compiler that is new enough.

    Args:
        needed: The oldest version.
        folder: The only folder to look in; empty: the usual ones.
    """
    for name in (str(Path(folder) / "clang++"),) if folder else _CANDIDATES:
        path = shutil.which(name)
        if path is None:
            continue
        match = re.search(r"version (\d+)[\d.]*", version_text(path))
        if match and int(match.group(1)) >= needed:
            return path, match.group(0).removeprefix("version ")
    return None


def _no_clang(arch: str, needed: int, folder: str) -> MissingToolchain:
    """Returns why there is no compiler for a target, and a line that names packages that exist."""
    if folder:
        problem = f"{CLANG_FOLDER}: found no clang++ {needed} or newer for {arch} in {folder}"
        return MissingToolchain(problem, FIX.replace(f"-{USUAL}", f"-{packaged_llvm(needed)}"))
    there = find_clang(OLDEST_CLANG)
    if needed == OLDEST_CLANG:
        return MissingToolchain(f"no clang++ {OLDEST_CLANG} or newer")
    fix = FIX.replace(f"-{USUAL}", f"-{packaged_llvm(needed)}")
    told = f"clang++ {there[1]} has no {arch}, {needed} or newer has" if there else ""
    return MissingToolchain(told or f"no clang++ {needed} or newer", fix)


def _for_older(clang: str) -> tuple[str, ...]:
    """Returns the options with which a compiler that is newer than HIP 5 compiles for it."""
    headers = Path(clang).resolve().parents[1].glob(f"lib/clang/*/include/{_DECLARATIONS}")
    texts = [path.read_text(encoding="utf-8") for path in headers]
    return _FOR_HIP_5 if texts and not any(_GONE in text for text in texts) else ()


def _first_folder(folders: tuple[str, ...], file: str) -> Path | None:
    return next((Path(f) for f in folders if (Path(f) / file).exists()), None)
