"""The folders that programs need: HIP's libraries, and the compiler under its usual names.

Both are made in the user's cache, because they hold links and the path of this installation.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import sys
from pathlib import Path

import kernel_gym
from kernel_gym.devices.cache import cache_folder
from kernel_gym.devices.sim.changed_headers import changed_headers
from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.simulated_rocm import bundler

LIBRARY_NAMES = ("libamdhip64.so", *(f"libamdhip64.so.{major}" for major in (5, 6, 7)))
"""Names under which programs look for the runtime; ROCm counts its major version."""
COMPILER_LIBRARY_NAMES = ("libhiprtc.so", *(f"libhiprtc.so.{major}" for major in (5, 6, 7)))
TORCH_LIBRARIES = {"libc10_hip.so": "-lc10", "libtorch_hip.so": "-ltorch_cpu"}
"""Libraries of PyTorch for ROCm that builders link to, and what a build for the CPU has instead."""
_TOOLS = {
    "hipcc": "kernel_gym.simulated_rocm.hipcc",
    "hipconfig": "kernel_gym.simulated_rocm.hipconfig",
    "rocminfo": "kernel_gym.simulated_rocm.rocminfo",
}
_ARCH_TOOLS = ("amdgpu-arch", "amdgpu-offload-arch", "offload-arch", "rocm_agent_enumerator")
"""Tools that print the architectures of the GPUs; `--offload-arch=native` of clang runs one."""

NO_RUNTIME = "the HIP runtime is not built: install kernel-gym from its checkout again (make setup)"
"""The message where the libraries of the simulated HIP runtime are not there."""


def library_folder() -> Path | None:
    """Returns the folder with libamdhip64.so and libhiprtc.so; None if they are not built."""
    library = runtime_library()
    if library is None:
        return None
    folder = _own_folder("lib")
    for name in LIBRARY_NAMES + COMPILER_LIBRARY_NAMES:
        _link(folder / name, library)
    for name, there in TORCH_LIBRARIES.items():
        _write(folder / name, f"INPUT({there})\n")  # a script of the linker
    lines = sys.executable, str(package_root()), str(_own_folder("bin") / "hipcc")
    _write(folder / "installation", "".join(f"{line}\n" for line in lines))
    return folder


def compiler_folder() -> Path | None:
    """Returns the folder with `hipcc` and what clang needs beside it; None without the runtime."""
    if runtime_library() is None:
        return None
    folder = _own_folder("bin")
    for name, module in _TOOLS.items():
        _script(folder / name, _call(module))
    for name in _ARCH_TOOLS:
        _script(
            folder / name, 'device="${KERNEL_GYM_SIM_DEVICE:-sim:gfx942}"\necho "${device#sim:}"'
        )
    command = shlex.join([sys.executable, "-I", "-S", str(Path(bundler.__file__))])
    if (real := _bundler()) is not None:
        command = shlex.quote(real)
    _script(folder / "clang-offload-bundler", f'exec {command} "$@"')
    return folder


def rocm_folder() -> Path | None:
    """Returns the folder that stands for ROCm's own; None without a linker.

    Compilers that come without a linker and without device libraries, such as FlyDSL's, look for
    ROCm's below this folder. The device libraries are those that come with Triton.
    """
    chain = hip_toolchain()
    if not isinstance(chain, HipToolchain):
        return None
    linker = Path(chain.clang).resolve().with_name("ld.lld")
    if not linker.exists():
        return None
    folder = _own_folder("llvm/bin")
    _link(folder / linker.name, linker)
    rocm = folder.parent.parent
    for library in _triton_libraries():
        _link(_own_folder("amdgcn/bitcode") / library.name, library)
    return rocm


def _triton_libraries() -> list[Path]:
    """The device libraries that come with Triton; none without Triton."""
    spec = importlib.util.find_spec("triton")
    if spec is None or not spec.origin:
        return []
    return sorted((Path(spec.origin).parent / "backends" / "amd" / "lib").glob("*.bc"))


def _bundler() -> str | None:
    """The bundler of the compiler; Debian has it in another package."""
    chain = hip_toolchain()
    if not isinstance(chain, HipToolchain):
        return None
    beside = Path(chain.clang).resolve().with_name("clang-offload-bundler")
    if beside.exists():
        return str(beside)
    return shutil.which(f"clang-offload-bundler-{chain.version.partition('.')[0]}")


def device_library_folder(bitcode: Path, wanted: str, there: str) -> Path:
    """Returns a folder with ROCm's device libraries, complete for a target.

    Older ROCm lacks the library with the number of a new target. That of an older target works.

    Args:
        bitcode: The folder of the device libraries.
        wanted: The name of the library that clang looks for, without its suffix.
        there: The name of the one that is there.
    """
    folder = _own_folder("bitcode")
    for file in bitcode.glob("*.bc"):
        _link(folder / file.name, file)
    if wanted != there:
        _link(folder / f"{wanted}.bc", bitcode / f"{there}.bc")
    return folder


def header_folder(headers: Path) -> Path | None:
    """Returns a folder to search before HIP's headers; None if they need no change."""
    return changed_headers(headers, _own_folder("include"))


def runtime_library() -> Path | None:
    """Returns the file of the HIP host runtime; None if it is not built."""
    spec = importlib.util.find_spec("kernel_gym.simulated_rocm._hip_runtime")
    return Path(spec.origin) if spec is not None and spec.origin else None


def package_root() -> Path:
    """Returns the folder that holds the package."""
    return Path(kernel_gym.__file__).resolve().parent.parent


def _own_folder(name: str) -> Path:
    """A folder of this installation, so that two of them do not disturb each other."""
    place = f"{sys.executable}\n{package_root()}".encode()
    path = cache_folder("hip") / hashlib.sha256(place).hexdigest()[:12] / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def _call(module: str) -> str:
    root = str(package_root())
    code = f"import sys; sys.path.insert(0, {root!r}); from {module} import main; sys.exit(main())"
    return f'exec {shlex.join([sys.executable, "-I", "-c", code])} "$@"'


def _script(path: Path, body: str) -> None:
    _write(path, f"#!/bin/sh\n{body}\n")
    if not os.access(path, os.X_OK):
        path.chmod(0o755)


def _write(path: Path, text: str) -> None:
    """Writes a file if it differs; another process may do the same at this moment."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    own = path.with_name(f"{path.name}.{os.getpid()}")
    own.write_text(text, encoding="utf-8")
    own.replace(path)


def _link(path: Path, target: Path) -> None:
    if path.is_symlink() and path.readlink() == target:
        return
    own = path.with_name(f"{path.name}.{os.getpid()}")
    own.symlink_to(target)
    own.replace(path)
