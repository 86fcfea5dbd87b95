"""Calls of a GPU runtime that PyTorch does not offer: allocations that are shared by handle.

PyTorch's allocator places many tensors in one allocation, and a handle opens the whole allocation.
So the memory that the judge shares with a worker is allocated here, apart from the judge's tensors.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import torch

from kernel_gym.devices.gpu.vendors import vendor_here

HANDLE_BYTES = 64
FREE_SHARE = 0.25
"""A GPU is crowded if a smaller share of its memory is free. One evaluation needs about as much."""
KEPT_BYTES = 8 << 30
"""Bytes that a process may keep unused while there is room: twice what it allocates ahead."""
_LAZY_PEER_ACCESS = 1


class GpuRuntimeError(RuntimeError):
    """A call of the runtime failed. The message has the call's name and the error number."""


class _Handle(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char * HANDLE_BYTES)]


def allocate(size: int) -> int:
    """Returns the device address of a new allocation.

    Raises:
        GpuRuntimeError: There is no room.
    """
    address = ctypes.c_void_p()
    _call("Malloc", ctypes.byref(address), ctypes.c_size_t(size))
    return address.value or 0


def crowded() -> bool:
    """Whether too little memory is free for one evaluation."""
    free, total = torch.cuda.mem_get_info()
    return free < FREE_SHARE * total


def keeps_too_much(held: int, least: int | None = None) -> bool:
    """Whether a process should return unused memory to the driver.

    An allocation by the driver takes milliseconds, and longer while other processes create
    contexts. So the memory that most tasks need is kept while there is room. The memory of a large
    task is not kept: a process that builds or waits would not notice when others need it.

    Args:
        held: Unused bytes that the process holds.
        least: Bytes that it may keep on a crowded GPU. None: the GPU's state does not matter.
    """
    return held > KEPT_BYTES or (least is not None and held > least and crowded())


def give_back(least: int | None = None) -> None:
    """Returns PyTorch's unused memory to the driver if it is too much, see `keeps_too_much`."""
    held = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    if keeps_too_much(held, least):
        torch.cuda.empty_cache()


def reserve(size: int) -> torch.Tensor:
    """Allocates memory that PyTorch keeps when it is freed, and uses for later tensors.

    An allocation by the driver takes a millisecond, and longer while other processes create
    contexts.
    """
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def free(address: int) -> None:
    """Frees an allocation."""
    _call("Free", ctypes.c_void_p(address))


def export(address: int) -> bytes:
    """Returns a handle by which another process on this machine opens the allocation.

    Raises:
        GpuRuntimeError: This system does not share device memory between processes.
    """
    handle = _Handle()
    _call("IpcGetMemHandle", ctypes.byref(handle), ctypes.c_void_p(address))
    return ctypes.string_at(ctypes.addressof(handle), HANDLE_BYTES)


def open_handle(handle: bytes) -> int:
    """Returns the address at which an exported allocation appears in this process.

    Raises:
        GpuRuntimeError: It cannot be opened here.
    """
    address = ctypes.c_void_p()
    function = _function("IpcOpenMemHandle")
    function.argtypes = [ctypes.POINTER(ctypes.c_void_p), _Handle, ctypes.c_uint]
    _check(
        "IpcOpenMemHandle", function(address, _Handle.from_buffer_copy(handle), _LAZY_PEER_ACCESS)
    )
    return address.value or 0


def close_handle(address: int) -> None:
    """Closes an allocation that `open_handle` has opened."""
    _call("IpcCloseMemHandle", ctypes.c_void_p(address))


def allocation_of(address: int) -> tuple[int, int]:
    """Returns start and size in bytes of the allocation that contains an address.

    Raises:
        GpuRuntimeError: No allocation contains it.
    """
    start, size = ctypes.c_void_p(), ctypes.c_size_t()
    library, name = vendor_here().range_symbol
    function = getattr(_loaded(library), name)
    status = function(ctypes.byref(start), ctypes.byref(size), ctypes.c_void_p(address))
    if status:
        raise GpuRuntimeError(f"{name} failed with error {status}")
    return start.value or 0, size.value


def read_exported(handle: bytes, offset: int, target: torch.Tensor) -> None:
    """Copies device memory that another process has exported. All arguments are checked.

    Args:
        handle: The handle of the allocation.
        offset: Bytes from its start.
        target: uint8 [n] on the device.

    Raises:
        GpuRuntimeError: The allocation cannot be opened, or is too small.
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
    """Returns a uint8 tensor [size] over device memory, without owning the memory."""
    return torch.as_tensor(
        _Memory(address, size), device=torch.device("cuda", torch.cuda.current_device())
    )


class _Memory:
    """Device memory with the interface by which array libraries exchange memory."""

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
    """Opens a library that PyTorch has loaded. A second copy would have separate state."""
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
        _function("GetLastError")()  # otherwise PyTorch's next call would report this error
        raise GpuRuntimeError(f"{vendor_here().prefix}{name} failed with error {status}")
