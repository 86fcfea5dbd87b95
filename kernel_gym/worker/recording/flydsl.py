"""Candidates in FlyDSL: its compiler runs in the recorder and starts no other program.

FlyDSL launches through HIP. Its calls reach the recorder as those of a candidate in HIP do, and
each kernel is loaded as the device takes it: as assembler text, or linked from that.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import triton

from kernel_gym.extras import missing_extra
from kernel_gym.sandbox.failures import BuildError
from kernel_gym.worker.hip.connection import Connection
from kernel_gym.worker.recording.hsaco import CodeOf
from kernel_gym.worker.recording.named_library import named_library
from kernel_gym.worker.recording.runtime import RecordingRuntime

if TYPE_CHECKING:
    from flydsl._mlir import ir

VERSION = "0.5."
"""Begin of the version that the changes below are for."""
_LIBRARY = "libamdhip64.so.7"
_LINKED, _TEXT = "gpu-module-to-binary{format=fatbin", "gpu-module-to-binary{format=isa"
_OBJECT = 3
"""MLIR's number of the format of an object that is loaded as it is."""


def install(runtime: RecordingRuntime, code_of: CodeOf) -> Connection:
    """Makes FlyDSL ready for a candidate, before it is imported.

    Args:
        runtime: Takes its launches.
        code_of: Makes the code that the device takes from assembler text.

    Returns:
        The connection that takes its calls of HIP.

    Raises:
        BuildError: It is not installed or in another version.
    """
    check_installed()
    connection = Connection(runtime, b"")
    prepare(runtime.properties.arch, code_of)
    return connection


def prepare(arch: str, code_of: CodeOf) -> None:
    """Makes FlyDSL compile without a linker and call the HIP runtime of this process.

    There is a connection of that runtime, and FlyDSL is installed.

    Args:
        arch: The architecture to compile for, such as gfx942.
        code_of: Makes the code that the device takes from assembler text.
    """
    home = Path(os.environ["HOME"])
    os.environ |= {
        "ARCH": arch,
        "FLYDSL_GPU_ARCH": arch,
        "FLYDSL_RUNTIME_ENABLE_CACHE": "0",
        "FLYDSL_DEBUG_ENABLE_DEBUG_INFO": "1",
        "ROCM_PATH": str(_device_libraries(home / "rocm")),
    }
    library = home / _LIBRARY
    library.write_bytes(named_library(_LIBRARY))
    ctypes.CDLL(str(library))
    _keep_text(code_of)
    _time_by_judge()


def check_installed() -> None:
    """Checks that FlyDSL is there, in the version that this module knows, and what it calls.

    Raises:
        BuildError: Something of this is missing.
    """
    if importlib.util.find_spec("kernel_gym.simulated_rocm._hip_runtime") is None:
        raise BuildError("the HIP runtime is not built: install kernel-gym from its checkout again")
    if importlib.util.find_spec("flydsl") is None:
        raise BuildError(missing_extra(ModuleNotFoundError(name="flydsl")))
    version = importlib.metadata.version("flydsl")
    if not version.startswith(VERSION):
        fix = "pip install 'kernel-gym[flydsl]'"
        raise BuildError(f"FlyDSL {version} is installed, expected {VERSION}x; {fix}")


def _device_libraries(folder: Path) -> Path:
    """Makes a folder like ROCm's, with the device libraries that come with Triton."""
    bitcode = folder / "amdgcn" / "bitcode"
    bitcode.mkdir(parents=True)
    for file in (Path(triton.__file__).parent / "backends" / "amd" / "lib").glob("*.bc"):
        (bitcode / file.name).symlink_to(file)
    return folder


def _time_by_judge() -> None:
    """Lets FlyDSL's autotuner time as Triton's does; its own waits for a clock of the GPU."""
    autotuner = importlib.import_module("flydsl.autotune")

    def do_bench(
        call: Callable[[], object],
        warmup: int = 5,
        rep: int = 25,
        quantiles: Sequence[float] | None = None,
    ) -> object:
        return triton.testing.do_bench(call, warmup=warmup, rep=rep, quantiles=quantiles)

    vars(autotuner).update(do_bench=do_bench)


def _keep_text(code_of: CodeOf) -> None:
    """Ends FlyDSL's compilation with assembler text. For an object it would start a linker."""
    from flydsl.compiler.backends.rocm import RocmBackend
    from flydsl.compiler.jit_function import MlirCompiler

    passes_of, lower = RocmBackend._pipeline_parts, MlirCompiler.compile

    def passes_to_text(backend: object, **options: object) -> tuple[list[str], str]:
        passes, last = passes_of(backend, **options)
        return passes, last.replace(_LINKED, _TEXT)

    def lower_to_text(text: str, **options: object) -> ir.Module:
        module = lower(text, **options)
        with module.context:
            _call_objects(module, code_of)
        return module

    RocmBackend._pipeline_parts = passes_to_text
    MlirCompiler.compile = lower_to_text


def _call_objects(module: ir.Module, code_of: CodeOf) -> None:
    """States the texts of a module as objects, since FlyDSL's runtime loads nothing else."""
    from flydsl._mlir import ir
    from flydsl._mlir.dialects import gpu

    for operation in module.body.operations:
        if operation.operation.name == "gpu.binary":
            texts = map(gpu.ObjectAttr, ir.ArrayAttr(operation.attributes["objects"]))
            objects = [
                gpu.ObjectAttr.get(
                    one.target, _OBJECT, _loaded(one.object, code_of), one.properties, one.kernels
                )
                for one in texts
            ]
            operation.attributes["objects"] = ir.ArrayAttr.get(objects)


def _loaded(text: bytes, code_of: CodeOf) -> bytes:
    """Returns what is loaded. The target has the name that Triton's LLVM writes; a zero ends it."""
    named = text.replace(b'"amdgcn-amd-amdhsa-unknown-', b'"amdgcn-amd-amdhsa--')
    return code_of(named) + b"\0"
