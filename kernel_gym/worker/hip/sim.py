"""Loads a HIP candidate, or builds and runs a HIP program, on a simulated GPU.

Clang compiles a source twice. The device side becomes assembler text for the simulator. The host
side, with the C launcher, becomes a shared object that is linked against this project's own small
HIP runtime. The calls of that runtime become requests to the device. No torch headers are needed.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from kernel_gym.devices.sim.hip_files import (
    ASSEMBLER,
    LIBRARY,
    commands,
    files,
    first_error,
)
from kernel_gym.sandbox.failures import BuildError
from kernel_gym.worker.hip import compiler
from kernel_gym.worker.hip.connection import Connection
from kernel_gym.worker.sim.runtime import DeviceError, SimRuntime

_SUCCESS = 0


def load(
    entry: str, outputs: Sequence[int], assembler: bytes, library: bytes, runtime: SimRuntime
) -> Callable[..., object]:
    """Loads a compiled candidate; returns a function that calls its launcher.

    The arguments of the function are those of the launcher without the stream: tensors and numbers.

    Args:
        entry: Name of the launcher.
        outputs: Which arguments the function returns.
        assembler: Assembler text of the device side.
        library: Shared object of the host side.
        runtime: The driver of the simulated GPU.

    Raises:
        BuildError: The object does not load, or it has no such launcher.
    """
    path = Path(os.environ["TMPDIR"]) / LIBRARY
    path.write_bytes(library)
    connection = Connection(runtime, assembler)
    host = _open(str(path))
    try:
        launcher = getattr(host, entry)
    except AttributeError:
        raise BuildError(f'the source exports no extern "C" launcher {entry!r}') from None
    return _Launcher(launcher, connection, outputs)


def run_program(
    source: str, toolchain: dict[str, list[str]], runtime: SimRuntime, words: Sequence[str] = ()
) -> int:
    """Builds a program, calls its `main` with these words and returns the exit status.

    Raises:
        BuildError: The source does not compile, or it has no `main`.
    """
    folder = Path(os.environ["TMPDIR"])
    logs, failed = compiler.build(folder, files(source), commands(toolchain))
    if failed:
        raise BuildError(first_error(next((log for log in logs if "error:" in log), logs[0])))
    connection = Connection(runtime, (folder / ASSEMBLER).read_bytes())
    host = _open(str(folder / LIBRARY))
    if not hasattr(host, "main"):
        raise BuildError("the source has no main()")
    values = (ctypes.c_char_p * (len(words) + 1))(*[word.encode() for word in words], None)
    status = host.main(len(words), values)
    if status and connection.error is not None:  # with status 0 the program has handled it
        raise connection.error
    return status


class _Launcher:
    """Calls the C launcher with device addresses and sizes."""

    def __init__(
        self, function: ctypes._NamedFuncPointer, connection: Connection, outputs: Sequence[int]
    ) -> None:
        self._function = function
        self._function.restype = ctypes.c_int
        self._connection = connection
        self._outputs = outputs

    def __call__(self, *args: torch.Tensor | float) -> tuple[object, ...]:
        self._connection.error = None
        status = self._function(*[_c_argument(a) for a in args], ctypes.c_void_p(None))
        if self._connection.error is not None:
            raise self._connection.error
        if status != _SUCCESS:
            raise DeviceError(f"the launcher returned hipError_t {status}, expected hipSuccess (0)")
        return tuple(args[i] for i in self._outputs)


def _c_argument(value: torch.Tensor | float) -> ctypes._SimpleCData:
    if isinstance(value, torch.Tensor):
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int64(value)


def _open(library: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(library)
    except OSError as error:
        missing = str(error).split(":", 1)[-1].strip()
        raise BuildError(f"the host code does not load: {missing}") from None
