"""Builds and loads a HIP candidate for the simulated device: clang twice, a small HIP runtime.

The device side becomes assembler text for the simulator, the host side (the C launcher) a shared
object against our own HIP runtime, whose calls end in requests to the device. No torch headers.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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
from kernel_gym.worker.sim.tensor import DeviceTensor, describe

_SUCCESS = 0


def load(
    header: dict[str, Any], buffers: Sequence[bytes], runtime: SimRuntime
) -> Callable[..., Any]:
    """Loads what the compiler made of a source; returns a function that calls its launcher.

    The arguments of the function are the launcher's without the stream: tensors and numbers;
    `header["outputs"]` says which arguments it returns. The buffers are the assembler text of the
    device side and the shared object of the host side.

    Raises:
        BuildError: the object does not load, or the launcher is not there.
    """
    assembler, library = buffers
    path = Path(os.environ["TMPDIR"]) / LIBRARY
    path.write_bytes(library)
    connection = Connection(runtime, assembler.decode(errors="replace"))
    host = _open(str(path))
    try:
        launcher = getattr(host, header["entry"])
    except AttributeError:
        raise BuildError(f'the source exports no extern "C" launcher {header["entry"]!r}') from None
    return _Launcher(launcher, connection, header["outputs"])


def run_program(
    source: str, toolchain: dict[str, list[str]], runtime: SimRuntime, words: Sequence[str] = ()
) -> int:
    """Builds a whole program and calls its `main` with these words; returns what that returns.

    Raises:
        BuildError: the compiler's message, or there is no `main`.
    """
    folder = Path(os.environ["TMPDIR"])
    logs, failed = compiler.build(folder, files(source), commands(toolchain))
    if failed:
        raise BuildError(first_error(next((log for log in logs if "error:" in log), logs[0])))
    connection = Connection(runtime, (folder / ASSEMBLER).read_text(encoding="utf-8"))
    host = _open(str(folder / LIBRARY))
    if not hasattr(host, "main"):
        raise BuildError("the source has no main()")
    values = (ctypes.c_char_p * (len(words) + 1))(*[word.encode() for word in words], None)
    status = host.main(len(words), values)
    if status and connection.error is not None:  # else the program has expected it
        raise connection.error
    return status


class _Launcher:
    """Calls the C launcher with device addresses and sizes."""

    def __init__(self, function: Any, connection: Connection, outputs: list[int]) -> None:
        self._function = function
        self._function.restype = ctypes.c_int
        self._connection = connection
        self._outputs = outputs

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        self._connection.error = None
        status = self._function(*[_c_argument(a) for a in args], ctypes.c_void_p(None))
        if self._connection.error is not None:
            raise self._connection.error
        if status != _SUCCESS:
            raise DeviceError(f"the launcher returned hipError_t {status}, expected hipSuccess (0)")
        return tuple(args[i] for i in self._outputs)


def _c_argument(value: Any) -> Any:
    if isinstance(value, DeviceTensor):
        return ctypes.c_void_p(describe(value)["address"])
    return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int64(value)


def _open(library: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(library)
    except OSError as error:
        missing = str(error).split(":", 1)[-1].strip()
        raise BuildError(f"the host code does not load: {missing}") from None
