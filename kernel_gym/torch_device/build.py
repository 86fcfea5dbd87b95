"""Builds the device's library against the PyTorch that is installed here.

Simulated GPUs and real ones need it: it is the `cuda:0` that host code of candidates sees.

PyTorch's C++ interface differs between versions, so there is one library for each. `setup.py`
builds it where it sees PyTorch, and `python -m kernel_gym.torch_device.build` (in `make setup`)
where it did not. Otherwise the first use does, into the user's cache. Processes that need it at
the same time wait for the first of them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE / "csrc"
FLAGS = (
    *("-std=c++20", "-O2", "-g0", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall"),
    "-Wno-unused-function",
)
NEEDS = ("libc10.so", "libtorch_cpu.so")
"""PyTorch's libraries that the device uses, in the order of their loading."""


class DeviceBuildError(RuntimeError):
    """The library cannot be built here. The text says what is missing."""


def find_torch() -> Path | None:
    """Returns PyTorch's folder without importing it; None if it is not installed."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def is_for_gpus(torch: Path) -> bool:
    """Whether this is a build of PyTorch for GPUs, which has a `cuda` device of its own."""
    return any((torch / "lib" / f"libtorch_{kind}.so").exists() for kind in ("cuda", "hip"))


def library_name() -> str:
    """Returns the file name of the library for this PyTorch and these sources."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.iterdir()):
        digest.update(path.read_bytes())
    digest.update(" ".join(FLAGS).encode())
    version = importlib.metadata.version("torch").replace("+", "_")
    machine = sysconfig.get_platform().replace("-", "_")
    return f"_torch_device_{version}_{machine}_{digest.hexdigest()[:12]}.so"


def find_library() -> Path | None:
    """Returns the library for this PyTorch, if it is built."""
    name = library_name()
    return next((f / name for f in (HERE, cache_folder()) if (f / name).exists()), None)


def missing() -> tuple[str, str] | None:
    """Returns what is missing to have the library, and how to get it; None if nothing is."""
    if find_torch() is None:
        return "found no PyTorch, expected the package torch", "pip install torch"
    if find_library() is None and _compiler() is None:
        return "found no C++ compiler, expected g++ 11 or newer", "apt install g++"
    return None


def _compiler() -> str | None:
    chosen = os.environ.get("CXX", "g++").split()
    return shutil.which(chosen[-1] if chosen else "g++") or shutil.which("c++")


def build(folder: Path | None = None) -> Path:
    """Builds the library unless it is there, and returns its path.

    The compiler has no time limit: it reads these sources alone, and a busy machine is slow.

    Args:
        folder: Where to put it; by default the user's cache.

    Raises:
        DeviceBuildError: There is no PyTorch or no C++ compiler, or the compiler failed.
    """
    torch, compiler = find_torch(), _compiler()
    if torch is None or compiler is None:
        raise DeviceBuildError(": ".join(missing() or ("found no C++ compiler", "apt install g++")))
    folder = folder or cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / library_name()
    with _locked(cache_folder() / "build.lock"):
        if not target.exists():
            print(
                "kernel-gym: building its device for PyTorch, once: half a minute of processor "
                "time ...",
                file=sys.stderr,
            )
            _compile(compiler, torch, target)
    return target


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds a lock over all processes of the machine. It ends with its process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(compiler: str, torch: Path, target: Path) -> None:
    """Compiles the sources into `target`, which is whole or absent.

    The compiler needs five seconds for the headers of PyTorch. So it gets the sources as two units
    at the same time, not one by one.
    """
    includes = [f"-I{torch / 'include' / part}" for part in ("", "torch/csrc/api/include")]
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / target.name
        units = _units(Path(scratch))
        objects = [f"{unit}.o" for unit in units]
        with ThreadPoolExecutor(len(units)) as pool:
            commands = (
                [compiler, *FLAGS, *includes, "-c", str(unit), "-o", path]
                for unit, path in zip(units, objects, strict=True)
            )
            list(pool.map(_run_compiler, commands))
        libraries = [f"-l:{name}" for name in NEEDS]  # no path: `library.load` knows where
        _run_compiler(
            [compiler, *FLAGS, *objects, "-o", str(made), f"-L{torch / 'lib'}", *libraries]
        )
        made.replace(target)


def _units(folder: Path) -> list[Path]:
    """Writes files that include all sources: one for each of at most two processors."""
    sources = sorted(SOURCES.glob("*.cpp"))
    count = min(2, os.cpu_count() or 1)
    units = [folder / f"unit_{number}.cpp" for number in range(count)]
    for number, unit in enumerate(units):
        lines = (f'#include "{source}"\n' for source in sources[number::count])
        unit.write_text("".join(lines), encoding="utf-8")
    return units


def _run_compiler(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        error = next((s for s in done.stderr.splitlines() if "error:" in s), done.stderr[-500:])
        raise DeviceBuildError(f"the device for PyTorch does not compile: {error}")


def cache_folder() -> Path:
    """Returns the folder of the user's cache for the library."""
    folder = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(folder) / "kernel-gym" / "torch_device"


if __name__ == "__main__":
    build(HERE if os.access(HERE, os.W_OK) else None)
