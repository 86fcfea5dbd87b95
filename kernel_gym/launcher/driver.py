"""Calls of a driver by ctypes: each status is checked, each address is a number."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from kernel_gym.launcher.vendors import SIGNATURES, MemoryHandle, VendorTable
from kernel_gym.plans.limits import MAX_ARGUMENTS_BYTES

# The numbers of *_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES and so on are those of CUDA and of HIP.
_STATIC_SHARED, _LOCAL, _REGISTERS = 1, 3, 4
_NON_BLOCKING = 1
_RELAXED = 2  # the mode of captures in which other threads may do anything
_ALIGNMENT = 16
_LAZY_PEERS = 1


class DriverError(Exception):
    """The driver refused a call, or a kernel faulted. The text names the call and the error."""


class GpuDriver:
    """The first device of a driver, in this process.

    Args:
        vendor: The driver.
        library: The file of its library; by default the loader finds it.

    Raises:
        DriverError: The library does not load, or there is no device.
    """

    def __init__(self, vendor: VendorTable, library: str | None = None) -> None:
        self.vendor = vendor
        try:
            self._library = ctypes.CDLL(library or vendor.library)
        except OSError as error:
            raise DriverError(f"the driver does not load: {error}") from None
        for name, types in SIGNATURES.items():
            function = getattr(self._library, vendor.functions[name], None)
            if function is None:
                raise DriverError(f"the driver has no function {vendor.functions[name]}")
            function.argtypes, function.restype = types, ctypes.c_int
        self._check("opening the device", vendor.open(self._library))
        self.stream = self._new("create_stream", _NON_BLOCKING)
        self._arguments = _ArgumentArea()

    def load_module(self, content: bytes) -> int:
        """Loads a code object."""
        return self._new("load_module", ctypes.create_string_buffer(content))

    def unload_module(self, module: int) -> None:
        """Unloads a code object."""
        self._call("unload_module", module)

    def find_function(self, module: int, name: str) -> int:
        """Finds a kernel of a code object."""
        return self._new("find_function", module, name.encode())

    def find_variable(self, module: int, name: str) -> tuple[int, int]:
        """Returns address and bytes of a device variable."""
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        places = ctypes.byref(address), ctypes.byref(size)
        self._call("find_variable", *places, module, name.encode())
        return address.value, size.value

    def static_shared(self, function: int) -> int:
        """Bytes of shared memory that the code of a kernel declares."""
        return self._attribute(function, _STATIC_SHARED)

    def registers(self, function: int) -> int:
        """Registers of a thread of a kernel."""
        return self._attribute(function, _REGISTERS)

    def local_bytes(self, function: int) -> int:
        """Bytes of memory that each thread of a kernel has for what does not fit in registers."""
        return self._attribute(function, _LOCAL)

    def allow_shared(self, function: int, size: int) -> None:
        """Lets a kernel use so many bytes of dynamic shared memory."""
        status = self.vendor.allow_shared(self._library, ctypes.c_void_p(function), size)
        self._check("allowing shared memory", status)

    def launch(
        self,
        function: int,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        arguments: Sequence[bytes],
    ) -> None:
        """Queues a kernel.

        Args:
            function: The kernel.
            grid: Workgroups along each axis.
            block: Threads of a workgroup along each axis.
            shared: Bytes of dynamic shared memory.
            arguments: The bytes of each argument.
        """
        pointers = self._arguments.place(arguments)
        self._call("launch", function, *grid, *block, shared, self.stream, pointers, None)

    def allocate(self, size: int) -> int:
        """Allocates memory and returns its address, a multiple of 256."""
        return self._new("allocate", max(1, size))

    def free(self, address: int) -> None:
        """Frees memory."""
        self._call("free", address)

    def open_shared(self, handle: bytes) -> int:
        """Opens memory of another process on this device; returns its address."""
        function = getattr(self._library, self.vendor.open_shared)
        function.argtypes = ctypes.c_void_p, MemoryHandle, ctypes.c_uint
        address = ctypes.c_void_p()
        content = MemoryHandle.from_buffer_copy(handle)
        status = function(ctypes.byref(address), content, _LAZY_PEERS)
        self._check(self.vendor.open_shared, status)
        return address.value or 0

    def copy_out(self, address: int, size: int) -> bytes:
        """Waits for the queued work, then copies bytes from the device."""
        self.wait()
        data = ctypes.create_string_buffer(size)
        if size:
            self._call("copy_out", data, address, size)
        return data.raw

    def pin(self, place: int, size: int) -> None:
        """Lets the device copy from and to memory of the host at full speed."""
        self._call("pin", place, size, 0)

    def queue_copy_in(self, address: int, place: int, size: int) -> None:
        """Queues a copy from memory of the host, which must stay as it is until it has ended."""
        if size:
            self._call("queue_copy_in", address, place, size, self.stream)

    def queue_copy_out(self, place: int, address: int, size: int) -> None:
        """Queues a copy to memory of the host."""
        if size:
            self._call("queue_copy_out", place, address, size, self.stream)

    def copy(self, target: int, source: int, size: int) -> None:
        """Queues a copy of bytes within the device."""
        self._call("copy", target, source, size, self.stream)

    def fill(self, address: int, pattern: bytes, count: int) -> None:
        """Queues a fill with `count` elements of 1, 2 or 4 bytes."""
        value = int.from_bytes(pattern, "little")
        self._call(f"fill_{len(pattern)}", address, value, count, self.stream)

    def wait(self) -> None:
        """Waits for the queued work.

        Raises:
            DriverError: A kernel faulted.
        """
        self._call("wait_for_stream", self.stream)

    def create_event(self) -> int:
        """Makes an event."""
        return self._new("create_event", 0)

    def record_event(self, event: int) -> None:
        """Queues the record of an event."""
        self._call("record_event", event, self.stream)

    def elapsed(self, start: int, stop: int) -> float:
        """Waits for the second event; returns seconds between both."""
        self._call("wait_for_event", stop)
        milliseconds = ctypes.c_float()
        self._call("elapsed", ctypes.byref(milliseconds), start, stop)
        return milliseconds.value * 1e-3

    def begin_capture(self) -> None:
        """Records queued work from now on, and does not start it."""
        self._call("begin_capture", self.stream, _RELAXED)

    def end_capture(self) -> int:
        """Ends the recording and returns it as a graph that can be launched."""
        graph = self._new_behind("end_capture", self.stream)
        instance = self._new("instantiate", graph, 0)
        self._call("destroy_graph", graph)
        return instance

    def launch_graph(self, graph: int) -> None:
        """Queues a graph."""
        self._call("launch_graph", graph, self.stream)

    def destroy_graph(self, graph: int) -> None:
        """Destroys a graph."""
        self._call("destroy_instance", graph)

    def _attribute(self, function: int, number: int) -> int:
        value = ctypes.c_int()
        self._call("function_attribute", ctypes.byref(value), number, function)
        return value.value

    def _new(self, name: str, *arguments: object) -> int:
        """Calls a function whose first argument is the place of its result."""
        result = ctypes.c_void_p()
        self._call(name, ctypes.byref(result), *arguments)
        return result.value or 0

    def _new_behind(self, name: str, *arguments: object) -> int:
        """Calls a function whose last argument is the place of its result."""
        result = ctypes.c_void_p()
        self._call(name, *arguments, ctypes.byref(result))
        return result.value or 0

    def _call(self, name: str, *arguments: object) -> None:
        full_name = self.vendor.functions[name]
        self._check(full_name, getattr(self._library, full_name)(*arguments))

    def _check(self, what: str, status: int) -> None:
        if status:
            text = self.vendor.error_text(self._library, status).decode(errors="replace")
            raise DriverError(f"{what}: error {status}, {text}")


class _ArgumentArea:
    """Memory for the arguments of one launch, with zeros behind them.

    A kernel that declares more or larger arguments than the plan has reads zeros, not our memory.
    """

    def __init__(self) -> None:
        self._bytes = ctypes.create_string_buffer(_ALIGNMENT * (1 << 10) + 3 * MAX_ARGUMENTS_BYTES)
        self._start = ctypes.addressof(self._bytes)
        self._tail = self._start + len(self._bytes) - MAX_ARGUMENTS_BYTES - 1
        self._pointers = (ctypes.c_void_p * MAX_ARGUMENTS_BYTES)(*([self._tail] * 65536))
        self._used = self._count = 0

    def place(self, arguments: Sequence[bytes]) -> ctypes.Array:
        """Writes arguments and returns the array of pointers to them."""
        ctypes.memset(self._start, 0, self._used)
        place = self._start + -self._start % _ALIGNMENT
        for number, argument in enumerate(arguments):
            ctypes.memmove(place, argument, len(argument))
            self._pointers[number] = place
            place += -(-max(1, len(argument)) // _ALIGNMENT) * _ALIGNMENT
        for number in range(len(arguments), self._count):
            self._pointers[number] = self._tail
        self._used, self._count = place - self._start, len(arguments)
        return self._pointers


def handle_of(vendor: VendorTable, address: int) -> bytes | None:
    """Returns the handle of memory that this process has allocated on the device.

    Args:
        vendor: The driver, whose context this thread has.
        address: Where the memory begins.

    Returns:
        The handle; None where the driver shares no memory.
    """
    handle = MemoryHandle()
    try:
        function = getattr(ctypes.CDLL(vendor.library), vendor.share)
    except (OSError, AttributeError):
        return None
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_uint64), ctypes.c_int
    status = function(ctypes.byref(handle), address)
    return None if status else bytes(handle.content)
