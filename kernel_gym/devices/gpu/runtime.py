"""The few calls of a GPU runtime that torch does not offer: whole allocations, shared by handle.

PyTorch's allocator cuts many tensors out of one allocation, and a handle opens a whole one. What
judge and worker share is therefore allocated here, apart from everything else that a judge holds.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import torch

from kernel_gym.devices.gpu.vendors import vendor_here

HANDLE_BYTES = 64
FREE_SHARE = 0.25
"""Of a GPU's memory: one evaluation at a time needs more than it holds, hardly more than this."""
KEPT_BYTES = 8 << 30
"""What a process may keep without use while there is room for others: twice what it asks ahead."""
_LAZY_PEER_ACCESS = 1


class GpuRuntimeError(RuntimeError):
    """A call of the runtime failed; the text has its name and the error's number."""


class _Handle(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char * HANDLE_BYTES)]


def allocate(size: int) -> int:
    """Device address of a fresh allocation of its own.

    Raises:
        GpuRuntimeError: there is no room.
    """
    address = ctypes.c_void_p()
    _call("Malloc", ctypes.byref(address), ctypes.c_size_t(size))
    return address.value or 0


def crowded() -> bool:
    """Whether too little memory is free for what one evaluation at a time needs."""
    free, total = torch.cuda.mem_get_info()
    return free < FREE_SHARE * total


def keeps_too_much(held: int, least: int | None = None) -> bool:
    """Whether a process should give back what it holds without using it.

    Asking the driver anew takes milliseconds, and longer while others make their contexts, so what
    usual tasks need is kept while there is room. What a task of much memory took is not: once there
    is no room, its holder may be building, or waiting for a turn, and hear nothing of it.

    Args:
        held: bytes.
        least: bytes that it may keep on a crowded GPU; None to keep what there is room for.
    """
    return held > KEPT_BYTES or (least is not None and held > least and crowded())


def give_back(least: int | None = None) -> None:
    """Returns to the driver what torch holds here without use, if that is too much."""
    held = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    if keeps_too_much(held, least):
        torch.cuda.empty_cache()


def reserve(size: int) -> torch.Tensor:
    """Memory that torch keeps when it is freed: later tensors are cut out of it.

    To ask the driver takes a millisecond, and several while other processes make their contexts.
    """
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def free(address: int) -> None:
    """Gives an allocation back."""
    _call("Free", ctypes.c_void_p(address))


def export(address: int) -> bytes:
    """A handle by which another process on this machine opens the allocation.

    Raises:
        GpuRuntimeError: this system does not share device memory between processes.
    """
    handle = _Handle()
    _call("IpcGetMemHandle", ctypes.byref(handle), ctypes.c_void_p(address))
    return ctypes.string_at(ctypes.addressof(handle), HANDLE_BYTES)


def open_handle(handle: bytes) -> int:
    """Address at which an exported allocation appears in this process.

    Raises:
        GpuRuntimeError: it cannot be opened here.
    """
    address = ctypes.c_void_p()
    function = _function("IpcOpenMemHandle")
    function.argtypes = [ctypes.POINTER(ctypes.c_void_p), _Handle, ctypes.c_uint]
    _check(
        "IpcOpenMemHandle", function(address, _Handle.from_buffer_copy(handle), _LAZY_PEER_ACCESS)
    )
    return address.value or 0


def close_handle(address: int) -> None:
    """Gives back what `open_handle` has opened."""
    _call("IpcCloseMemHandle", ctypes.c_void_p(address))


def allocation_of(address: int) -> tuple[int, int]:
    """Address and size in bytes of the whole allocation that an address is in.

    Raises:
        GpuRuntimeError: it is in none.
    """
    start, size = ctypes.c_void_p(), ctypes.c_size_t()
    library, name = vendor_here().range_symbol
    function = getattr(_loaded(library), name)
    status = function(ctypes.byref(start), ctypes.byref(size), ctypes.c_void_p(address))
    if status:
        raise GpuRuntimeError(f"{name} failed with error {status}")
    return start.value or 0, size.value


def read_exported(handle: bytes, offset: int, target: torch.Tensor) -> None:
    """Copies device memory that another process has exported; trusts nothing that it says.

    Args:
        handle: by which the allocation is opened.
        offset: bytes from its start.
        target: uint8 [n] on the device.

    Raises:
        GpuRuntimeError: it cannot be opened, or is too small.
    """
    address = open_handle(handle)
    try:
        start, size = allocation_of(address)
        if not 0 <= offset <= start + size - address - target.numel():
            raise GpuRuntimeError("a place outside of its allocation")
        target.copy_(as_tensor(address + offset, target.numel()))
        torch.cuda.synchronize()
    finally:
        close_handle(address)


def as_tensor(address: int, size: int) -> torch.Tensor:
    """A uint8 tensor [size] over device memory that it does not own."""
    return torch.as_tensor(
        _Memory(address, size), device=torch.device("cuda", torch.cuda.current_device())
    )


class _Memory:
    """Device memory in the form that array libraries exchange."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def _library() -> ctypes.CDLL:
    return _loaded(vendor_here().library)


@cache
def _loaded(wanted: str) -> ctypes.CDLL:
    """A library that torch has loaded: a second copy would have a state of its own."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps if wanted in line}
    if not paths:
        raise GpuRuntimeError(f"no {wanted} is loaded; is this a GPU build of PyTorch?")
    return ctypes.CDLL(min(paths))


def _function(name: str) -> Any:
    return getattr(_library(), vendor_here().prefix + name)


def _call(name: str, *args: object) -> None:
    _check(name, _function(name)(*args))


def _check(name: str, status: int) -> None:
    if status:
        _function("GetLastError")()  # or the next call of torch's would report this error
        raise GpuRuntimeError(f"{vendor_here().prefix}{name} failed with error {status}")
