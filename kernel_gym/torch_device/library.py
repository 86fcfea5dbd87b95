"""Loads the device's library into this process and connects it with the device's owner.

The library must be loaded before PyTorch is imported: PyTorch asks once whether there is a GPU. So
this module does not import PyTorch.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable
from typing import Any

from kernel_gym.torch_device import build

COMPUTE, ASK = 0, 1
"""The policies: compute operators in the device's memory, or ask the owner and refuse the rest."""

_TEXT = 4096
_DONE, _FAILED, _OUT_OF_MEMORY = 0, 1, 2
_LONG, _SIGNED, _INT, _POINTER = ctypes.c_uint64, ctypes.c_int64, ctypes.c_int, ctypes.c_void_p


class Piece(ctypes.Structure):
    """A strided tensor in device memory, as `Piece` in device.h."""

    _fields_ = [
        ("address", _LONG),
        ("type", ctypes.c_char_p),
        ("dimensions", _SIGNED),
        ("sizes", ctypes.POINTER(_SIGNED)),
        ("strides", ctypes.POINTER(_SIGNED)),
    ]


class Charge(ctypes.Structure):
    """The modelled cost of one call of an operator, as `Charge` in device.h.

    Attributes:
        seconds: Its time; negative if its parts are charged instead of it.
        bytes: What its kernels move.
        flops: Its floating-point operations.
    """

    _fields_ = [(name, ctypes.c_double) for name in ("seconds", "bytes", "flops")]


_CALLS = {
    "allocate": ctypes.CFUNCTYPE(_INT, _LONG, ctypes.POINTER(_LONG), _POINTER),
    "copy": ctypes.CFUNCTYPE(_INT, ctypes.POINTER(Piece), ctypes.POINTER(Piece), _POINTER),
    "upload": ctypes.CFUNCTYPE(_INT, _LONG, _POINTER, _LONG, _POINTER),
    "fill": ctypes.CFUNCTYPE(
        *(_INT, ctypes.POINTER(Piece), ctypes.c_double, _SIGNED, _INT, _POINTER)
    ),
    "refuse": ctypes.CFUNCTYPE(None, ctypes.c_char_p),
    "price": ctypes.CFUNCTYPE(_INT, ctypes.c_char_p, ctypes.POINTER(Charge), _POINTER),
}  # in the order of Owner in device.h


class _Owner(ctypes.Structure):
    _fields_ = list(_CALLS.items())


class TorchDeviceError(RuntimeError):
    """The device cannot be had in this process. The text says why and what to do."""


_library: ctypes.CDLL | None = None
_connected: object = None


def load_before_torch() -> None:
    """Loads the library in a process that has not imported PyTorch.

    A build of PyTorch for GPUs must come first, as its own device must be known before ours.

    Raises:
        DeviceBuildError: The library cannot be built.
        TorchDeviceError: A CPU build of PyTorch is imported already.
    """
    torch = build.find_torch()
    if torch is not None and build.is_for_gpus(torch):
        importlib.import_module("torch")
    load()


def load() -> ctypes.CDLL:
    """Loads the library, and builds it first if there is none for this PyTorch.

    Raises:
        DeviceBuildError: It cannot be built.
        TorchDeviceError: A CPU build of PyTorch is imported already.
    """
    global _library
    if _library is None:
        torch = build.find_torch()
        if "torch" in sys.modules and torch is not None and not build.is_for_gpus(torch):
            raise TorchDeviceError(
                "PyTorch is imported already, expected the simulated GPU first: call "
                "kernel_gym.enable_simulation() before `import torch`, or run the program with "
                "`kernel-gym sim -- COMMAND`"
            )
        path = build.find_library() or build.build()
        if torch is not None:  # the library does not know where PyTorch's are
            for name in build.NEEDS:
                ctypes.CDLL(str(torch / "lib" / name))
        _library = ctypes.CDLL(str(path))
        _library.torch_device_seconds.restype = ctypes.c_double
        _library.torch_device_set_link.argtypes = [ctypes.c_double, ctypes.c_double]
        _library.torch_device_set_link.restype = None
        _library.torch_device_operators.restype = _LONG
        _library.torch_device_operators.argtypes = [ctypes.c_char_p, _LONG]
        _library.torch_device_released.restype = _LONG
        _library.torch_device_released.argtypes = [_LONG * 256, _LONG]
    return _library


def prepare() -> None:
    """Registers the operators of the device in this process, so that forks connect at once.

    A build of PyTorch for GPUs has its own operators: the registration waits for `connect`.
    """
    torch = build.find_torch()
    if _library is not None and torch is not None and not build.is_for_gpus(torch):
        _library.torch_device_prepare()


def _not_asked(*_: object) -> None:
    raise TorchDeviceError("a device that computes asks its owner for memory only")


def connect(
    policy: int,
    allocate: Callable[[int], int],
    copy: Callable[[Piece, Piece], None] = _not_asked,
    upload: Callable[[int, bytes], None] = _not_asked,
    fill: Callable[[Piece, float | int | bool], None] = _not_asked,
    refuse: Callable[[str], None] = _not_asked,
    price: Callable[[str], Charge] | None = None,
) -> None:
    """Makes the device exist in this process, with its memory and its policy.

    Args:
        policy: `COMPUTE`, or `ASK` with the four functions that follow.
        allocate: Returns the address of so many bytes. A `MemoryError` becomes PyTorch's own.
        copy: Copies between two pieces of one dtype.
        upload: Copies host bytes to an address.
        fill: Sets all elements of a piece.
        refuse: Takes the name of an operator that was refused.
        price: Returns the cost of a call that is computed from its text, JSON of
            descriptions.cpp. It is asked once for a text. Without it operators cost nothing.

    Raises:
        TorchDeviceError: PyTorch does not see the device.
    """
    global _connected
    library = load()
    owner = _Owner(
        _CALLS["allocate"](_allocating(allocate)),
        _CALLS["copy"](_reporting(lambda source, target: copy(source[0], target[0]))),
        _CALLS["upload"](
            _reporting(lambda address, data, size: upload(address, ctypes.string_at(data, size)))
        ),
        _CALLS["fill"](
            _reporting(
                lambda target, real, whole, kind: fill(target[0], (whole, real, bool(whole))[kind])
            )
        ),
        _CALLS["refuse"](lambda name: refuse(name.decode())),
        _CALLS["price"]() if price is None else _CALLS["price"](_pricing(price)),
    )
    _connected = owner  # C++ holds its functions from here on
    if library.torch_device_install(ctypes.byref(owner), policy):
        raise TorchDeviceError("PyTorch does not see the simulated GPU: it was imported before it")


def released() -> list[int]:
    """Takes the addresses that PyTorch has freed since the last call."""
    assert _library is not None
    addresses: list[int] = []
    count = _MAX_FREED
    while count == _MAX_FREED:
        count = _library.torch_device_released(_freed, _MAX_FREED)
        addresses += _freed[:count]
    return addresses


_MAX_FREED = 256
_freed = (_LONG * _MAX_FREED)()


def refuse_to_compute(capturing: bool) -> None:
    """Refuses operators that compute while a graph is captured: a replay would leave them out."""
    if _library is not None:
        _library.torch_device_capture(int(capturing))


def set_link(rate: float, latency: float) -> None:
    """Sets the model of a transfer between host and device. Without it transfers cost nothing.

    Args:
        rate: Bytes/s.
        latency: Seconds that each transfer takes besides.
    """
    load().torch_device_set_link(rate, latency)


def seconds() -> float:
    """Modelled seconds of all operators and transfers so far."""
    return 0.0 if _library is None else _library.torch_device_seconds()


def operators() -> dict[str, dict[str, float]]:
    """Returns `calls`, `bytes`, `flops` and `seconds` of each operator by its name."""
    if _library is None:
        return {}
    size = _library.torch_device_operators(None, 0) + (1 << 16)
    buffer = ctypes.create_string_buffer(size)
    _library.torch_device_operators(buffer, size)
    charged: dict[str, dict[str, float]] = {}
    for line in buffer.value.decode().splitlines():
        name, *numbers = line.split("\t")
        fields = ("calls", "bytes", "flops", "seconds")
        charged[name] = dict(zip(fields, map(float, numbers), strict=True))
    return charged


def _write(place: int, error: BaseException) -> int:
    text = str(error).encode(errors="replace")[: _TEXT - 1] + b"\0"
    ctypes.memmove(place, text, len(text))
    return _OUT_OF_MEMORY if isinstance(error, MemoryError) else _FAILED


def _allocating(allocate: Callable[[int], int]) -> Callable[..., int]:
    def call(size: int, address: ctypes._Pointer[ctypes.c_uint64], error: int) -> int:
        try:
            address[0] = allocate(size)
        except BaseException as failure:  # no exception may pass through C
            return _write(error, failure)
        return _DONE

    return call


def _pricing(price: Callable[[str], Charge]) -> Callable[..., int]:
    def call(text: bytes, charge: ctypes._Pointer[Charge], error: int) -> int:
        try:
            charge[0] = price(text.decode())
        except BaseException as failure:  # no exception may pass through C
            return _write(error, failure)
        return _DONE

    return call


def _reporting(work: Callable[..., None]) -> Callable[..., int]:
    """Returns a call that turns an exception into a status and its text."""

    def call(*args: Any) -> int:
        try:
            work(*args[:-1])
        except BaseException as failure:  # no exception may pass through C
            return _write(args[-1], failure)
        return _DONE

    return call
