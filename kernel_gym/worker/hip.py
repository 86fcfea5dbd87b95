"""Builds and loads a HIP candidate for the simulated device: clang twice, a small HIP runtime.

The device side becomes assembler text for the simulator, the host side (the C launcher) a shared
object against our own HIP runtime, whose calls end in requests to the device. No torch headers.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from kernel_gym.worker.failures import BuildError
from kernel_gym.worker.hip_connection import Connection
from kernel_gym.worker.runtime import DeviceError, SimRuntime
from kernel_gym.worker.tensor import DeviceTensor, describe

COMPILE_TIMEOUT = 60.0
_SUCCESS = 0

# The compiler refers to the device binary that it would embed; here it stays outside.
_STUB = """
extern "C" __attribute__((visibility("hidden"))) void* __hip_gpubin_handle_ = nullptr;
extern "C" __attribute__((visibility("hidden"))) const char __hip_fatbin_[8] = {0};
"""


def load(header: dict[str, Any], runtime: SimRuntime) -> Callable[..., Any]:
    """Builds the source and returns a function that calls its launcher.

    The arguments of the function are the launcher's without the stream: tensors and numbers;
    `header["outputs"]` says which arguments it returns.

    Raises:
        BuildError: the compiler's message, or the launcher is not there.
    """
    assembler, library = _compile(header["source"], header["toolchain"])
    connection = Connection(runtime, assembler)
    host = _open(library)
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
    assembler, library = _compile(source, toolchain)
    connection = Connection(runtime, assembler)
    host = _open(library)
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


def _compile(source: str, toolchain: dict[str, list[str]]) -> tuple[str, str]:
    """Runs both passes side by side: (assembler text, path of the host library)."""
    folder = os.environ["TMPDIR"]
    paths = {n: os.path.join(folder, n) for n in ("candidate.hip", "stub.cpp", "k.s", "k.so")}
    for name, text in (("candidate.hip", source), ("stub.cpp", _STUB)):
        with open(paths[name], "w", encoding="utf-8") as file:
            file.write(text)
    device = [*toolchain["device"], "-o", paths["k.s"], paths["candidate.hip"]]
    host = [*toolchain["host"], "-o", paths["k.so"], paths["candidate.hip"]]
    host += ["-x", "c++", paths["stub.cpp"]]
    running = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for command in (device, host)
    ]
    messages = [process.communicate(timeout=COMPILE_TIMEOUT)[1] for process in running]
    for process, message in zip(running, messages, strict=True):
        if process.returncode:
            raise BuildError(first_error(message.decode(errors="replace")))
    with open(paths["k.s"], encoding="utf-8") as file:
        return file.read(), paths["k.so"]


def first_error(text: str) -> str:
    """The first error of a compiler's log and what follows it."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if "error:" in line), 0)
    return "\n".join(lines[first : first + 40])
