"""The driver of a process with host code: turns what it does into requests to a device.

A recorder makes steps of a plan of them. A user's own program has the device in its process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypedDict, cast

from kernel_gym.devices.sim.memory import ARENA_BASE, ARENA_SIZE
from kernel_gym.protocol import device as messages
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.protocol.request import Request
from kernel_gym.worker.sim.properties import PROPERTIES


class DeviceError(RuntimeError):
    """The device refused a request or found a fault. Its text says which."""


class OutOfMemoryError(DeviceError, MemoryError):
    """The device has not enough memory for an allocation."""


class UnsupportedCodeError(DeviceError):
    """The device cannot decode the compiled kernel."""


class DeviceAnswer(TypedDict, total=False):
    """The fields of all answers of a device. Each kind of request has some of them."""

    error: str
    kind: str
    """The kind of error."""
    address: int
    size: int
    names: list[str]
    kernel: int
    """The number of a loaded kernel; those below describe it, as `LoadedKernel` does."""
    name: str
    args: list[tuple[int, str, int]]
    registers: int
    spills: int
    max_workgroup: int
    total_registers: int
    lds: int
    scratch: int


class SimRuntime(ABC):
    """Requests to a device, one at a time. Subclasses answer them.

    Args:
        arch: The architecture of the device.
    """

    _held = 0
    most_allocated = 0
    """The largest value that `allocated` has had."""

    def __init__(self, arch: str = "gfx942") -> None:
        self.properties = PROPERTIES[arch]
        self._sizes: dict[int, int] = {}
        self._captured: list[Request] | None = None
        self._of_graphs: set[int] = set()
        self._adopted: Counter[int] = Counter()  # an address may be adopted again
        self._next_adopted: int | None = None
        self.released: Callable[[], list[int]] = list
        """Takes the addresses of tensors that no longer exist."""

    @property
    def allocated(self) -> int:
        """Bytes that are allocated now."""
        self.free_released()
        return self._held

    def allocate(self, size: int) -> int:
        """Allocates `size` poisoned bytes and returns their address."""
        self.free_released()
        if self._next_adopted is not None:
            address, self._next_adopted = self._next_adopted, None
            self._adopted[address] += 1
            return address
        address = self._allocate(size)
        self._sizes[address] = size
        self._held += size
        self.most_allocated = max(self.most_allocated, self._held)
        if self.capturing:
            self._of_graphs.add(address)
        return address

    def free(self, address: int) -> None:
        """Frees an allocation, unless a captured graph will use it again."""
        if address in self._of_graphs:
            return
        self._held -= self._sizes.pop(address, 0)
        self._free(address)

    def adopt(self, address: int) -> None:
        """Makes the next allocation this memory, which the judge has allocated and will free."""
        self._next_adopted = address

    def free_released(self) -> None:
        """Frees the memory of tensors that no longer exist."""
        for address in self.released():
            if self._adopted[address]:
                self._adopted[address] -= 1
            else:
                self.free(address)

    def forget_peak(self) -> None:
        """Restarts `most_allocated` at what is allocated now."""
        self.most_allocated = self.allocated

    # -- captured graphs

    @property
    def capturing(self) -> bool:
        """Whether requests are recorded and not sent."""
        return self._captured is not None

    def begin_capture(self) -> None:
        """Records launches, fills and copies from now on.

        Raises:
            DeviceError: A capture is under way.
        """
        if self.capturing:
            raise DeviceError("a graph is being captured already")
        self._captured = []

    def end_capture(self) -> list[Request]:
        """Ends the recording and returns the requests, for `replay`."""
        captured, self._captured = self._captured or [], None
        return captured

    def replay(self, requests: list[Request]) -> None:
        """Sends recorded requests."""
        for request in requests:
            self._ask(request)

    def fill(self, tensor: TensorOnDevice, value: float) -> None:
        """Sets every element of a tensor."""
        self._work(messages.Fill(tensor, value))

    def copy(self, source: TensorOnDevice, target: TensorOnDevice) -> None:
        """Copies between two tensors of one dtype."""
        self._work(messages.Copy(source, target))

    def upload(self, address: int, data: bytes) -> None:
        """Copies host bytes to the device."""
        self._ask(messages.Upload(address, data))

    @abstractmethod
    def download(self, address: int, size: int) -> bytes:
        """Copies device bytes to the host.

        Raises:
            DeviceError: Only a trusted program may read them.
        """

    @abstractmethod
    def clock(self) -> float:
        """Modelled seconds that the device has been busy: for autotuning, not for a verdict."""

    def time_of(self, call: Callable[[], object]) -> float:
        """Modelled seconds of the work of a call: for autotuning, not for a verdict."""
        start = self.clock()
        call()
        return self.clock() - start

    def on_device(self, address: int) -> bool:
        """Whether an address is one of the device."""
        return ARENA_BASE <= address < ARENA_BASE + ARENA_SIZE

    def names(self, code: bytes) -> list[str]:
        """Names of the kernels in a module: an assembler text or a code object."""
        return self._ask(messages.KernelNames(code))["names"]

    def variable(self, code: bytes, name: str) -> tuple[int, int]:
        """Address and bytes of a device variable of a module; zeros if there is none."""
        answer = self._ask(messages.FindVariable(name, code))
        return answer["address"], answer["size"]

    def load(self, code: bytes, name: str | None = None, shared: int | None = None) -> DeviceAnswer:
        """Loads a kernel of a module; returns the fields of `LoadedKernel`."""
        return self._ask(messages.LoadKernel(name, shared, code))

    def launch(
        self,
        kernel: int,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        values: list[bytes],
        lds: int = 0,
    ) -> None:
        """Launches a kernel.

        Args:
            kernel: Its number, as `load` has returned it.
            grid: Workgroups along each axis.
            block: Threads of a workgroup along each axis.
            values: The packed bytes of each argument.
            lds: Bytes of dynamic LDS.
        """
        __tracebackhide__ = True  # pytest leaves this frame out of a kernel's failure
        sizes = [len(v) for v in values]
        self._work(messages.LaunchKernel(kernel, grid, block, sizes, lds, b"".join(values)))

    def _allocate(self, size: int) -> int:
        return self._ask(messages.Allocate(size))["address"]

    def _free(self, address: int) -> None:
        self._ask(messages.Free(address))

    def _work(self, request: Request) -> None:
        __tracebackhide__ = True
        self.free_released()  # a kernel that uses freed memory is at fault
        if self._captured is None:
            self._ask(request)
        else:
            self._captured.append(request)

    @abstractmethod
    def _ask(self, request: Request) -> DeviceAnswer:
        """Answers a request.

        Raises:
            DeviceError: The device does not carry it out.
        """

    @staticmethod
    def checked(answer: Mapping[str, object]) -> DeviceAnswer:
        """Returns the device's answer.

        Raises:
            DeviceError: The answer is an error.
        """
        __tracebackhide__ = True
        known = cast("DeviceAnswer", answer)
        if "error" in known:
            raise _ERRORS.get(known.get("kind", ""), DeviceError)(known["error"])
        return known


_ERRORS = {
    "AsmError": UnsupportedCodeError,
    "UnsupportedInstruction": UnsupportedCodeError,
    "memory": OutOfMemoryError,
}
"""The exception for a kind of answer."""
