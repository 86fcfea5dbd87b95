"""Builds the simulator's C++ engine and the HIP host runtime.

A wheel gets the engine for each instruction set. A development checkout (`pip install --editable`)
gets the one that its processor runs best, in a third of the time; `KERNEL_GYM_ENGINES=all` asks
for each of them, and `none` for no C++ at all: `make setup` compiles it by itself. It also builds
the device for PyTorch, if it sees a PyTorch (`--no-build-isolation`). Otherwise the first use
builds that.

Project metadata is in pyproject.toml; this file only adds the extension modules. The
libraries have a plain C interface and are loaded with ctypes (kernel_gym/sim/native.py), which
picks one by the processor's features.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import platform
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

SOURCES = Path("kernel_gym/sim/csrc")
ENGINE = "kernel_gym.sim._engine_"
ENGINES_VARIABLE = "KERNEL_GYM_ENGINES"
HIP_RUNTIME = Path("kernel_gym/simulated_rocm/csrc")
TORCH_DEVICE = Path("kernel_gym/torch_device")
COMMON_FLAGS = [
    "-std=c++17",
    "-O3",
    "-g0",
    "-fno-strict-aliasing",
    "-ffp-contract=off",  # results must not depend on the compiler fusing operations
    "-fno-math-errno",
    "-fvisibility=hidden",
    "-pthread",
    "-Wall",
    "-Wno-psabi",
    "-Wno-uninitialized",  # GCC 12 warns about its own intrinsics
    "-Wno-maybe-uninitialized",
]
ISA_FLAGS = {
    "avx512": [
        *("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mprefer-vector-width=512"),
        *("-mfma", "-mf16c", "-mbmi", "-mbmi2", "-mpopcnt", "-mlzcnt"),
    ],
    "avx2": ["-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2", "-mpopcnt", "-mlzcnt"],
    "portable": [],
}


class ParallelBuild(build_ext):
    """Compiles the sources of each extension in parallel, without Python exports."""

    def finalize_options(self) -> None:
        """Uses every processor unless the command line gives a number; chooses the engines."""
        super().finalize_options()
        self.jobs = self.parallel or len(os.sched_getaffinity(0))
        self.parallel = None  # the sources of one extension keep all processors busy
        if os.environ.get(ENGINES_VARIABLE) == "none":
            self.extensions = []
        names = {ENGINE + isa for isa in engine_isas(development=bool(self.inplace))}
        self.extensions = [
            extension
            for extension in self.extensions
            if extension.name in names or not extension.name.startswith(ENGINE)
        ]

    def run(self) -> None:
        """Builds the extensions, then the device for PyTorch."""
        if not self.extensions:
            return
        super().run()
        if self.inplace:
            remove_other_engines(extension.name for extension in self.extensions)
        package = TORCH_DEVICE if self.inplace else Path(self.build_lib) / TORCH_DEVICE
        build_torch_device(package)

    def build_extensions(self) -> None:
        """Gives each source to the compiler by itself, the largest ones first."""
        compile_sources = self.compiler.compile

        def compile_in_parallel(sources: list[str], **options: Any) -> list[str]:
            largest_first = sorted(sources, key=os.path.getsize, reverse=True)
            with ThreadPoolExecutor(self.jobs) as pool:
                objects = pool.map(lambda one: compile_sources([one], **options), largest_first)
                return sorted(path for paths in objects for path in paths)

        self.compiler.compile = compile_in_parallel
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        """Keeps the objects of the extensions apart: all engines have the same sources."""
        own = copy.copy(self)
        own.build_temp = os.path.join(self.build_temp, ext.name)
        super(ParallelBuild, own).build_extension(ext)

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """Exports no init function: the libraries are not Python modules."""
        return []

    def get_ext_filename(self, fullname: str) -> str:
        """Names no version of Python: the libraries fit every one."""
        folder, _, name = fullname.rpartition(".")
        return str(Path(*folder.split("."), library_name(name)))


class AnyPythonWheel(bdist_wheel):
    """Tags the wheel for this platform and every Python 3."""

    def get_tag(self) -> tuple[str, str, str]:
        """Replaces the tags of the interpreter that builds."""
        return "py3", "none", super().get_tag()[2]


def load_module(path: Path) -> ModuleType:
    """Loads a module of the package, which is not installed yet, by its path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def library_name(name: str) -> str:
    """Returns the file of an extension.

    An engine's name has a dot, so it is no module: tools that import each module that they find
    must not load an engine, whose instructions this processor may lack.
    """
    return name.replace("_engine_", "_engine.") + ".so"


def engine_isas(development: bool) -> tuple[str, ...]:
    """Returns the instruction sets to build the engine for.

    Args:
        development: Whether only this checkout will use it.
    """
    processor = load_module(Path("kernel_gym/sim/processor.py"))
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    buildable = [isa for isa in processor.ISAS if x86 or isa == "portable"]
    if not development or os.environ.get(ENGINES_VARIABLE) == "all":
        return tuple(buildable)
    return tuple(isa for isa in processor.isas_of_processor() if isa in buildable)[:1]


def remove_other_engines(built: Iterable[str]) -> None:
    """Removes engines of a checkout that were not built now: they are of older sources."""
    names = {library_name(name.rpartition(".")[2]) for name in built}
    for path in SOURCES.parent.glob("_engine*.so"):
        if path.name not in names:
            path.unlink()


def build_torch_device(folder: Path) -> None:
    """Builds the device for the PyTorch of this interpreter, if there is one."""
    module = load_module(TORCH_DEVICE / "build.py")
    if module.find_torch() is None:
        print("no PyTorch here: its first use builds the simulated device", file=sys.stderr)
    else:
        for older in set(folder.glob("*.so")) - {folder / module.library_name()}:
            older.unlink()
        if not (folder / module.library_name()).exists():
            module.build(folder)


def hip_runtime() -> Extension:
    """Returns the host side of HIP that candidates link against on the simulator."""
    return Extension(
        "kernel_gym.simulated_rocm._hip_runtime",
        sources=sorted(str(path) for path in HIP_RUNTIME.glob("hip_*.cpp")),
        depends=["setup.py", *(str(path) for path in HIP_RUNTIME.glob("*.h"))],
        extra_compile_args=["-std=c++17", "-O2", "-g0", "-Wall"],
        extra_link_args=["-ldl", "-pthread"],
        language="c++",
    )


def engines() -> list[Extension]:
    """Returns one engine for each instruction set of this processor family."""
    return [
        Extension(
            ENGINE + isa,
            sources=sorted(str(path) for path in SOURCES.rglob("*.cpp")),
            depends=["setup.py", *sorted(str(path) for path in SOURCES.rglob("*.h"))],
            include_dirs=[str(SOURCES)],
            extra_compile_args=[*COMMON_FLAGS, *ISA_FLAGS[isa]],
            extra_link_args=["-pthread"],
            language="c++",
        )
        for isa in engine_isas(development=False)
    ]


setup(
    ext_modules=[*engines(), hip_runtime()],
    cmdclass={"build_ext": ParallelBuild, "bdist_wheel": AnyPythonWheel},
)
