"""The table of what differs between drivers: names of libraries and functions, opening a device."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernel_gym.plans.types import CodeForm

_INT, _UINT, _SIZE, _WORD = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_uint64
_POINTER = ctypes.c_void_p

SIGNATURES: Mapping[str, tuple[type, ...]] = {
    "load_module": (_POINTER, _POINTER),
    "unload_module": (_POINTER,),
    "find_function": (_POINTER, _POINTER, ctypes.c_char_p),
    "find_variable": (_POINTER, _POINTER, _POINTER, ctypes.c_char_p),
    "function_attribute": (_POINTER, _INT, _POINTER),
    "launch": (_POINTER, *(_UINT,) * 7, _POINTER, _POINTER, _POINTER),
    "allocate": (_POINTER, _SIZE),
    "free": (_WORD,),
    "copy_out": (_POINTER, _WORD, _SIZE),
    "copy": (_WORD, _WORD, _SIZE, _POINTER),
    "queue_copy_in": (_WORD, _POINTER, _SIZE, _POINTER),
    "queue_copy_out": (_POINTER, _WORD, _SIZE, _POINTER),
    "pin": (_POINTER, _SIZE, _UINT),
    "fill_1": (_WORD, ctypes.c_ubyte, _SIZE, _POINTER),
    "fill_2": (_WORD, ctypes.c_ushort, _SIZE, _POINTER),
    "fill_4": (_WORD, _UINT, _SIZE, _POINTER),
    "create_stream": (_POINTER, _UINT),
    "wait_for_stream": (_POINTER,),
    "create_event": (_POINTER, _UINT),
    "record_event": (_POINTER, _POINTER),
    "wait_for_event": (_POINTER,),
    "elapsed": (_POINTER, _POINTER, _POINTER),
    "begin_capture": (_POINTER, _INT),
    "end_capture": (_POINTER, _POINTER),
    "instantiate": (_POINTER, _POINTER, ctypes.c_ulonglong),
    "launch_graph": (_POINTER, _POINTER),
    "destroy_graph": (_POINTER,),
    "destroy_instance": (_POINTER,),
}
"""The types of the arguments of each function, equal for all drivers. Each returns a status."""

HANDLE_BYTES = 64
"""Bytes of a handle by which another process opens memory of a device, in CUDA and in HIP."""


class MemoryHandle(ctypes.Structure):
    """A handle, which `open_shared` functions take by value."""

    _fields_ = (("content", ctypes.c_ubyte * HANDLE_BYTES),)


_CUDA = {
    "load_module": "cuModuleLoadData",
    "unload_module": "cuModuleUnload",
    "find_function": "cuModuleGetFunction",
    "find_variable": "cuModuleGetGlobal_v2",
    "function_attribute": "cuFuncGetAttribute",
    "launch": "cuLaunchKernel",
    "allocate": "cuMemAlloc_v2",
    "free": "cuMemFree_v2",
    "copy_out": "cuMemcpyDtoH_v2",
    "copy": "cuMemcpyDtoDAsync_v2",
    "queue_copy_in": "cuMemcpyHtoDAsync_v2",
    "queue_copy_out": "cuMemcpyDtoHAsync_v2",
    "pin": "cuMemHostRegister_v2",
    "fill_1": "cuMemsetD8Async",
    "fill_2": "cuMemsetD16Async",
    "fill_4": "cuMemsetD32Async",
    "create_stream": "cuStreamCreate",
    "wait_for_stream": "cuStreamSynchronize",
    "create_event": "cuEventCreate",
    "record_event": "cuEventRecord",
    "wait_for_event": "cuEventSynchronize",
    "elapsed": "cuEventElapsedTime",
    "begin_capture": "cuStreamBeginCapture_v2",
    "end_capture": "cuStreamEndCapture",
    "instantiate": "cuGraphInstantiateWithFlags",
    "launch_graph": "cuGraphLaunch",
    "destroy_graph": "cuGraphDestroy",
    "destroy_instance": "cuGraphExecDestroy",
}
_HIP = {
    "load_module": "hipModuleLoadData",
    "unload_module": "hipModuleUnload",
    "find_function": "hipModuleGetFunction",
    "find_variable": "hipModuleGetGlobal",
    "function_attribute": "hipFuncGetAttribute",
    "launch": "hipModuleLaunchKernel",
    "allocate": "hipMalloc",
    "free": "hipFree",
    "copy_out": "hipMemcpyDtoH",
    "copy": "hipMemcpyDtoDAsync",
    "queue_copy_in": "hipMemcpyHtoDAsync",
    "queue_copy_out": "hipMemcpyDtoHAsync",
    "pin": "hipHostRegister",
    "fill_1": "hipMemsetD8Async",
    "fill_2": "hipMemsetD16Async",
    "fill_4": "hipMemsetD32Async",
    "create_stream": "hipStreamCreateWithFlags",
    "wait_for_stream": "hipStreamSynchronize",
    "create_event": "hipEventCreateWithFlags",
    "record_event": "hipEventRecord",
    "wait_for_event": "hipEventSynchronize",
    "elapsed": "hipEventElapsedTime",
    "begin_capture": "hipStreamBeginCapture",
    "end_capture": "hipStreamEndCapture",
    "instantiate": "hipGraphInstantiateWithFlags",
    "launch_graph": "hipGraphLaunch",
    "destroy_graph": "hipGraphDestroy",
    "destroy_instance": "hipGraphExecDestroy",
}


@dataclass(frozen=True)
class VendorTable:
    """A driver.

    Args:
        library: The file name of its library.
        form: The form of the code objects that it loads.
        functions: The name of each function of `SIGNATURES`.
        open: Opens the first device of a loaded library; returns a status.
        error_text: Returns the text of a status.
        allow_shared: Lets a function use more dynamic shared memory than by default; returns a
            status.
    """

    library: str
    form: CodeForm
    functions: Mapping[str, str]
    open: Callable[[ctypes.CDLL], int]
    error_text: Callable[[ctypes.CDLL, int], bytes]
    allow_shared: Callable[[ctypes.CDLL, ctypes.c_void_p, int], int]
    share: str
    """The function that returns the handle of memory."""
    open_shared: str
    """The function that opens memory of another process by its handle."""


def _open_cuda(library: ctypes.CDLL) -> int:
    device, context = ctypes.c_int(), ctypes.c_void_p()
    return (
        library.cuInit(0)
        or library.cuDeviceGet(ctypes.byref(device), 0)
        or library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        or library.cuCtxSetCurrent(context)
    )


def _cuda_text(library: ctypes.CDLL, status: int) -> bytes:
    text = ctypes.c_char_p()
    library.cuGetErrorString(status, ctypes.byref(text))
    return text.value or b"unknown error"


def _allow_cuda_shared(library: ctypes.CDLL, function: ctypes.c_void_p, size: int) -> int:
    most_dynamic_shared = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    return library.cuFuncSetAttribute(function, most_dynamic_shared, ctypes.c_int(size))


def _open_hip(library: ctypes.CDLL) -> int:
    return library.hipInit(0) or library.hipSetDevice(0)


def _hip_text(library: ctypes.CDLL, status: int) -> bytes:
    library.hipGetErrorString.restype = ctypes.c_char_p
    return library.hipGetErrorString(status)


VENDORS = {
    "cuda": VendorTable(
        "libcuda.so.1",
        CodeForm.CUBIN,
        _CUDA,
        _open_cuda,
        _cuda_text,
        _allow_cuda_shared,
        "cuIpcGetMemHandle",
        "cuIpcOpenMemHandle_v2",
    ),
    "rocm": VendorTable(
        "libamdhip64.so",
        CodeForm.HSACO,
        _HIP,
        _open_hip,
        _hip_text,
        lambda *_: 0,
        "hipIpcGetMemHandle",
        "hipIpcOpenMemHandle",
    ),
}
"""The drivers, by the prefix of their devices' names. AMD's needs no permission for LDS."""
