"""Candidates in TileLang: its compiler runs in the recorder and starts no other program.

TileLang writes a kernel and the host function that launches it as one source in HIP, which it would
give to `hipcc`. Here the judge gets the source, and a confined compiler builds it as it builds each
source in HIP. Launches of the library that comes back become steps of the plan.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import torch
import triton

from kernel_gym.extras import missing_extra
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import decode
from kernel_gym.sandbox.channel import Channel
from kernel_gym.sandbox.failures import BuildError
from kernel_gym.worker.hip.connection import Connection
from kernel_gym.worker.recording.hsaco import CodeOf
from kernel_gym.worker.recording.runtime import RecordingRuntime

VERSION = "0.1.15"
"""The version that the changes below are for."""
_BACKEND = "cython"
"""TileLang's name of the backend that writes its host side in HIP, too."""


def install(judge: Channel, runtime: RecordingRuntime, code_of: CodeOf) -> Connection:
    """Makes TileLang ready for a candidate, before it is imported.

    Args:
        judge: The pipe, on which the judge builds what is asked for before it continues.
        runtime: Takes the launches.
        code_of: Makes the code that the device takes from assembler text.

    Returns:
        The connection that takes its calls of HIP.

    Raises:
        BuildError: It is not installed or in another version.
    """
    check_installed()
    os.environ |= {
        "CXX": "c++",  # TileLang asks for its name and starts none
        "TILELANG_AUTO_TUNING_CPU_COUNTS": "1",  # the judge builds one source at a time
        "TILELANG_AUTO_TUNING_DISABLE_CACHE": "1",
        "TILELANG_CACHE_DIR": str(Path(os.environ["HOME"]) / "tilelang"),
        "TILELANG_DISABLE_CACHE": "1",
        "TILELANG_EXECUTION_BACKEND": _BACKEND,
        "TILELANG_PRINT_ON_COMPILATION": "0",
    }
    connection = Connection(runtime, b"")  # first, so that its calls of HIP find ours
    _choose_target(runtime.properties.arch)
    _build_by_judge(judge, connection, code_of)
    _time_by_judge(runtime)
    return connection


def check_installed() -> None:
    """Checks that TileLang is there, in the version that this module knows, and what it calls.

    Raises:
        BuildError: Something of this is missing.
    """
    if importlib.util.find_spec("kernel_gym.simulated_rocm._hip_runtime") is None:
        raise BuildError("the HIP runtime is not built: install kernel-gym from its checkout again")
    if importlib.util.find_spec("tilelang") is None:
        raise BuildError(missing_extra(ModuleNotFoundError(name="tilelang")))
    version = importlib.metadata.version("tilelang")
    if version != VERSION:
        fix = "pip install 'kernel-gym[tilelang]'"
        raise BuildError(f"TileLang {version} is installed, expected {VERSION}; {fix}")


def _choose_target(arch: str) -> None:
    """Has kernels compiled for this GPU, by the backend that writes everything in HIP."""
    targets = importlib.import_module("tilelang.backend.target")
    rocm = importlib.import_module("tilelang.rocm.backend")
    named = importlib.import_module("tilelang.rocm.target")
    normalized = named.normalize_rocm_target

    def of_this_gpu(target: object) -> object:
        return normalized({"kind": "hip", "mcpu": arch} if target == "hip" else target)

    for name in targets.list_target_detectors():
        detect = of_this_gpu if name == "hip" else _nothing
        targets.register_target_detector(name, lambda f=detect: f("hip"), override=True)
    targets.register_target_normalizer("hip", of_this_gpu, override=True)
    kept = tuple(one for one in rocm.BACKEND.execution_backends if one.name == _BACKEND)
    object.__setattr__(rocm.BACKEND, "execution_backends", kept)


def _nothing(*_: object) -> None:
    """Finds no GPU of another vendor, and opens no file."""


def _build_by_judge(judge: Channel, connection: Connection, code_of: CodeOf) -> None:
    """Has the judge build libraries, and their launches go to the text that belongs to each."""
    generator = importlib.import_module("tilelang.jit.adapter.libgen").LibraryGenerator
    codes: dict[str, bytes] = {}

    def compile_lib(self: _Generator, timeout: float | None = None) -> None:
        judge.send({"ask": "build", "source": self.lib_code})
        message = judge.recv()
        told = decode(messages.TellExtension, message.header, message.buffers)
        path = Path(os.environ["TMPDIR"]) / f"tilelang{len(codes)}.so"
        path.write_bytes(told.library)
        self.srcpath, self.libpath = "", str(path)
        codes[self.libpath] = code_of(told.assembler)

    def load_lib(self: _Generator, lib_path: str | None = None) -> _Library:
        path = lib_path or self.libpath
        return _Library(path, codes[path], connection)

    generator.compile_lib, generator.load_lib = compile_lib, load_lib


def _time_by_judge(runtime: RecordingRuntime) -> None:
    """Lets TileLang's autotuner time by the judge. What it launches is no part of a plan."""
    tuner = importlib.import_module("tilelang.autotuner.tuner")
    profiler = importlib.import_module("tilelang.profiler")
    tune = tuner.AutoTuner.run

    def run(self: object, *args: object, **options: object) -> object:
        with runtime.trial():
            return tune(self, *args, **options)

    def do_bench(
        call: Callable[[], object],
        *_: object,
        quantiles: Sequence[float] | None = None,
        **__: object,
    ) -> object:
        return triton.testing.do_bench(call, quantiles=quantiles)

    def supply(_: object) -> Callable[[_Form], torch.Tensor]:
        return lambda form: torch.zeros(form.shape, dtype=form.torch_dtype(), device="cuda")

    vars(tuner).update(_init_logger_handlers=_nothing)  # they would write a file
    tuner.AutoTuner.run = run
    vars(profiler).update(do_bench=do_bench, get_tensor_supply=supply)


class _Generator(Protocol):
    """The part of TileLang's generator of libraries that is used."""

    lib_code: str
    srcpath: str
    libpath: str


class _Form(Protocol):
    """TileLang's description of a tensor."""

    shape: Sequence[int]

    def torch_dtype(self) -> torch.dtype:
        """Returns the type of its elements."""


class _Library:
    """A library of one kernel, with the functions that TileLang calls.

    Args:
        path: The library.
        code: The code of its device side.
        connection: Takes its launches.
    """

    def __init__(self, path: str, code: bytes, connection: Connection) -> None:
        library = ctypes.CDLL(path)
        self.init, self.get_last_error = library.init, library.get_last_error
        self._call, self._code, self._connection = library.call, code, connection

    def call(self, *args: object) -> int:
        """Launches the kernel; returns 0, or another number after an error."""
        self._connection.use(self._code)
        status: int = self._call(*args)
        return status
