"""Answers the calls of this project's HIP host runtime (hip_runtime.cpp) by requests."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from kernel_gym.devices.sim.memory import ARENA_SIZE
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.sim.timing.occupancy import occupancy
from kernel_gym.worker.hip.described import described
from kernel_gym.worker.sim.code_objects import code_of
from kernel_gym.worker.sim.runtime import DeviceAnswer, DeviceError, SimRuntime

_SUCCESS, _INVALID_VALUE, _INVALID_SYMBOL, _NOT_FOUND, _LAUNCH_FAILURE = 0, 1, 13, 500, 719
_WIDTHS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
"""The type of elements by their size in bytes, for fills."""

_INT, _WORD, _LONG, _TEXT = ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p
_WORDS, _LONGS = ctypes.POINTER(_WORD), ctypes.POINTER(_LONG)
if TYPE_CHECKING:  # at run time these types have no parameters
    Words = ctypes._Pointer[ctypes.c_uint32]
    Longs = ctypes._Pointer[ctypes.c_uint64]
    Pointers = ctypes._Pointer[ctypes.c_void_p]


class _Facts(ctypes.Structure):
    _fields_ = [
        (name, _INT) for name in ("registers", "lds", "scratch", "max_threads", "workgroups")
    ]


_TYPES = {
    "launch": ctypes.CFUNCTYPE(
        *(_INT, _TEXT, _WORDS, _WORDS, ctypes.POINTER(ctypes.c_void_p), _LONG, _LONG)
    ),
    "allocate": ctypes.CFUNCTYPE(_LONG, _LONG),
    "release": ctypes.CFUNCTYPE(_INT, _LONG),
    "copy": ctypes.CFUNCTYPE(_INT, _LONG, _LONG, _LONG, _INT),
    "fill": ctypes.CFUNCTYPE(_INT, _LONG, _WORD, _LONG, _INT),
    "clock": ctypes.CFUNCTYPE(ctypes.c_double),
    "facts": ctypes.CFUNCTYPE(_INT, _TEXT, _LONG, _LONG, ctypes.POINTER(_Facts)),
    "variable": ctypes.CFUNCTYPE(_INT, _TEXT, _LONGS, _LONGS),
    "module": ctypes.CFUNCTYPE(_INT, ctypes.c_void_p, _TEXT),
    "synchronize": ctypes.CFUNCTYPE(_INT),
}  # in the order of Callbacks in hip_process.h
_NOT_FOR_CANDIDATES = 6
"""Callbacks at the end that are null: for memory of the host that kernels reach, for example."""


class _Callbacks(ctypes.Structure):
    _fields_ = [*_TYPES.items(), ("others", ctypes.c_void_p * _NOT_FOR_CANDIDATES)]


class Connection:
    """Turns calls of the HIP runtime into requests to the device, and keeps the first error.

    Args:
        runtime: The driver of the simulated GPU.
        assembler: Assembler text of the source's device side.

    Raises:
        DeviceError: The device cannot decode a kernel of the source.
    """

    def __init__(self, runtime: SimRuntime, assembler: bytes) -> None:
        self.error: Exception | None = None
        self._runtime = runtime
        self._modules = [assembler]
        self._kernels: dict[str, DeviceAnswer] = {}
        self._of_text: dict[int, dict[str, DeviceAnswer]] = {}
        has_kernels = b".amdhsa_kernel" in assembler
        # A kernel that cannot be decoded fails here, before the first call.
        for name in runtime.names(assembler) if has_kernels else ():
            self._kernel(f"0:{name}")
        self._callbacks = _Callbacks(
            *(kind(getattr(self, f"_{name}")) for name, kind in _TYPES.items())
        )
        spec = importlib.util.find_spec("kernel_gym.simulated_rocm._hip_runtime")
        assert spec is not None  # checked by the judge
        assert spec.origin is not None
        shim = ctypes.CDLL(spec.origin, mode=ctypes.RTLD_GLOBAL)
        device = described(runtime.properties)
        shim.kernel_gym_hip_connect(ctypes.byref(self._callbacks), ctypes.byref(device))

    def use(self, assembler: bytes) -> None:
        """Takes the kernels of the next launches from this text, of the libraries that there are.

        Raises:
            DeviceError: The device cannot decode a kernel of the text.
        """
        if assembler is self._modules[0]:
            return
        self._modules[0] = assembler
        self._kernels = self._of_text.setdefault(id(assembler), {})
        for name in self._runtime.names(assembler) if not self._kernels else ():
            self._kernel(f"0:{name}")

    def watched(self, function: Callable[..., object]) -> Callable[..., object]:
        """Returns a function that raises the first error of the HIP calls of each call."""

        def call(*args: object) -> object:
            self.error = None
            result = function(*args)
            if self.error is not None:
                raise self.error
            return result

        return call

    def _try(self, work: Callable[[], object], failed: int = _INVALID_VALUE) -> int:
        try:
            work()
        except Exception as error:  # no exception may pass through C
            self.error = self.error or error
            return failed
        return _SUCCESS

    def _kernel(self, full_name: str) -> DeviceAnswer:
        if full_name not in self._kernels:
            module, _, name = full_name.partition(":")
            self._kernels[full_name] = self._runtime.load(self._modules[int(module)], name)
        return self._kernels[full_name]

    def _launch(
        self, name: bytes, grid: Words, block: Words, args: Pointers, shared: int, packed: int
    ) -> int:
        def launch() -> None:
            kernel = self._kernel(name.decode())
            explicit = [a for a in kernel["args"] if not a[1].startswith("hidden_")]
            if packed:  # one buffer that is laid out as the segment, perhaps without its end
                size = max((a[2] + a[0] for a in explicit), default=0)
                segment = _bytes_at(args, 0, packed).ljust(size, b"\0")
                values = [segment[a[2] : a[2] + a[0]] for a in explicit]
            else:
                values = [_bytes_at(args, i, a[0]) for i, a in enumerate(explicit)]
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

    def _copy(self, target: int, source: int, size: int, _: int) -> int:
        """Copies; the direction follows from the addresses, as a wrong one would be a crash."""
        if not (target and source):
            return _INVALID_VALUE

        def copy() -> None:
            to, of = self._runtime.on_device(target), self._runtime.on_device(source)
            if size > ARENA_SIZE:
                raise DeviceError(f"a copy of {size} bytes, expected at most {ARENA_SIZE}")
            if to and of:
                self._runtime.copy(_elements(source, size), _elements(target, size))
            elif to:
                # not string_at: it takes a size of 32 bits
                self._runtime.upload(target, bytes((ctypes.c_char * size).from_address(source)))
            elif of:
                ctypes.memmove(target, self._runtime.download(source, size), size)
            else:
                ctypes.memmove(target, source, size)

        return self._try(copy)

    def _fill(self, target: int, value: int, count: int, width: int) -> int:
        signed = value - (1 << 8 * width) if width > 1 and value >> (8 * width - 1) else value
        return self._try(lambda: self._runtime.fill(_elements(target, count, width), signed))

    def _clock(self) -> float:
        return self._runtime.clock()

    def _synchronize(self) -> int:
        return _SUCCESS if self.error is None else _LAUNCH_FAILURE

    def _facts(self, name: bytes, threads: int, shared: int, facts: ctypes._Pointer[_Facts]) -> int:
        try:
            kernel = self._kernel(name.decode())
        except DeviceError:
            return _NOT_FOUND
        lds, available = kernel["lds"] + shared, self._runtime.properties.spec.lds_bytes
        fits = occupancy(threads, lds, kernel["total_registers"], available)
        facts[0] = _Facts(
            kernel["total_registers"],
            kernel["lds"],
            kernel["scratch"],
            kernel["max_workgroup"] or 1024,
            fits.workgroups_per_cu,
        )
        return _SUCCESS

    def _variable(self, name: bytes, address: Longs, size: Longs) -> int:
        module, _, plain = name.decode().partition(":")
        address[0], size[0] = self._runtime.variable(self._modules[int(module)], plain)
        return _SUCCESS if address[0] else _INVALID_SYMBOL

    def _module(self, image: int | None, path: bytes | None) -> int:
        def load() -> None:
            code = code_of(image, path, self._runtime.properties.arch)
            self._runtime.names(code)
            self._modules.append(code)

        return 0 if self._try(load) else len(self._modules) - 1


def _bytes_at(args: Pointers, place: int, size: int) -> bytes:
    """Returns the bytes of one argument of a launch; `args` are pointers of the host."""
    if not args or not args[place]:
        raise DeviceError(f"the pointer to argument {place} is null, expected one to {size} bytes")
    return ctypes.string_at(args[place], size)


def _elements(address: int, count: int, width: int = 1) -> TensorOnDevice:
    return TensorOnDevice(address, (count,), (1,), _WIDTHS[width])
