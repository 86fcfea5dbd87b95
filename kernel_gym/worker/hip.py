"""Builds and loads a HIP candidate for the simulated device: clang twice, a small HIP runtime.

The device side becomes assembler text for the simulator, the host side (the C launcher) a shared
object against our own HIP runtime, whose calls end in requests to the device. No torch headers.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import subprocess
from collections.abc import Callable
from typing import Any

from kernel_gym.worker.failures import BuildError
from kernel_gym.worker.runtime import DeviceError, SimRuntime
from kernel_gym.worker.tensor import DeviceTensor, describe

COMPILE_TIMEOUT = 60.0
_SUCCESS, _INVALID_VALUE, _LAUNCH_FAILURE = 0, 1, 719
_HOST_TO_DEVICE, _DEVICE_TO_HOST, _DEVICE_TO_DEVICE, _DEFAULT = 1, 2, 3, 4

# The compiler refers to the device binary that it would embed; here it stays outside.
_STUB = """
extern "C" __attribute__((visibility("hidden"))) void* __hip_gpubin_handle_ = nullptr;
extern "C" __attribute__((visibility("hidden"))) const char __hip_fatbin_[8] = {0};
"""

_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint32),
    ctypes.POINTER(ctypes.c_uint32),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_uint64,
)
_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)
_RELEASE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64)
_COPY = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int
)
_FILL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64)


class _Callbacks(ctypes.Structure):
    _fields_ = [
        ("launch", _LAUNCH),
        ("allocate", _ALLOCATE),
        ("release", _RELEASE),
        ("copy", _COPY),
        ("fill", _FILL),
    ]


def load(header: dict[str, Any], runtime: SimRuntime) -> Callable[..., Any]:
    """Builds the source and returns a function that calls its launcher.

    The arguments of the function are the launcher's without the stream: tensors and numbers;
    `header["outputs"]` says which arguments it returns.

    Raises:
        BuildError: the compiler's message, or the launcher is not there.
    """
    assembler, library = _compile(header["source"], header["toolchain"])
    connection = _Connection(runtime, assembler)
    host = _open(library)
    try:
        launcher = getattr(host, header["entry"])
    except AttributeError:
        raise BuildError(f'the source exports no extern "C" launcher {header["entry"]!r}') from None
    return _Launcher(launcher, connection, header["outputs"])


class _Launcher:
    """Calls the C launcher with device addresses and sizes."""

    def __init__(self, function: Any, connection: _Connection, outputs: list[int]) -> None:
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


class _Connection:
    """The HIP runtime's calls, as requests to the device. Keeps the first error."""

    def __init__(self, runtime: SimRuntime, assembler: str) -> None:
        self.error: Exception | None = None
        self._runtime = runtime
        self._kernels = {name: runtime.load(assembler, name) for name in runtime.names(assembler)}
        self._callbacks = _Callbacks(
            _LAUNCH(self._launch),
            _ALLOCATE(self._allocate),
            _RELEASE(self._release),
            _COPY(self._copy),
            _FILL(self._fill),
        )
        spec = importlib.util.find_spec("kernel_gym.worker._hip_runtime")
        assert spec is not None  # checked by the judge
        assert spec.origin is not None
        shim = ctypes.CDLL(spec.origin, mode=ctypes.RTLD_GLOBAL)
        shim.kernel_gym_hip_connect(ctypes.byref(self._callbacks))

    def _try(self, work: Callable[[], Any], failed: int = _INVALID_VALUE) -> int:
        try:
            work()
        except Exception as error:
            self.error = self.error or error
            return failed
        return _SUCCESS

    def _launch(self, name: bytes, grid: Any, block: Any, args: Any, shared: int) -> int:
        def launch() -> None:
            kernel = self._kernels[name.decode()]
            sizes = [size for size, kind in kernel["args"] if not kind.startswith("hidden_")]
            values = [ctypes.string_at(args[i], size) for i, size in enumerate(sizes)]
            dims = tuple(grid[i] for i in range(3)), tuple(block[i] for i in range(3))
            self._runtime.launch(kernel["kernel"], *dims, values, lds=shared)

        return self._try(launch, _LAUNCH_FAILURE)

    def _allocate(self, size: int) -> int:
        address = [0]

        def allocate() -> None:
            address[0] = self._runtime.allocate(size)

        self._try(allocate)
        return address[0]

    def _release(self, address: int) -> int:
        return self._try(lambda: self._runtime.free(address))

    def _copy(self, target: int, source: int, size: int, kind: int) -> int:
        def copy() -> None:
            if kind == _HOST_TO_DEVICE:
                self._runtime.upload(target, ctypes.string_at(source, size))
            elif kind in (_DEVICE_TO_DEVICE, _DEFAULT):
                self._runtime.copy(_bytes_at(source, size), _bytes_at(target, size))
            else:
                self._runtime.refuse("hipMemcpy to the host")
                raise DeviceError("reading device memory on the host is refused")

        return self._try(copy)

    def _fill(self, target: int, value: int, size: int) -> int:
        return self._try(lambda: self._runtime.fill(_bytes_at(target, size), value & 0xFF))


def _bytes_at(address: int, size: int) -> dict[str, Any]:
    return {"address": address, "shape": [size], "strides": [1], "dtype": "uint8"}


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
