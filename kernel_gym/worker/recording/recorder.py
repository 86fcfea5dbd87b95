"""Writes the steps of a call into a plan: launches, fills, copies and constants, in their order."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import triton

from kernel_gym.plans.addresses import take_references
from kernel_gym.plans.types import (
    BufferRole,
    BufferView,
    CodeForm,
    CopyStep,
    FillStep,
    LaunchPlan,
    LaunchStep,
    PlanArgument,
    PlanBuffer,
    PlanCode,
    PlanKernel,
    PlanStep,
    ReadStep,
    TorchOperatorStep,
    UploadStep,
    WrongOutput,
)
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.sim.asm.module import ELF
from kernel_gym.worker.recording.memory import StandInMemory

Item = TypeVar("Item")


@dataclass(frozen=True)
class RecordedKernel:
    """A kernel that the host code has loaded: its code object, symbol and shared memory."""

    code: PlanCode
    name: str
    shared: int | None


class PlanRecorder:
    """Records one call after another.

    Args:
        arch: The architecture that code is compiled for.
        capacity: Bytes of memory of the device.
    """

    def __init__(self, arch: str, capacity: int) -> None:
        self.memory = StandInMemory(capacity)
        self._arch = arch
        self.begin()

    def begin(self) -> None:
        """Begins a call."""
        self.memory.begin()
        self._codes: list[PlanCode] = []
        self._kernels: list[PlanKernel] = []
        self._steps: list[PlanStep] = []
        self._arguments = 0

    @property
    def length(self) -> int:
        """How many steps the call has so far."""
        return len(self._steps)

    def argument(self, size: int, role: BufferRole) -> int:
        """Adds the memory of the call's next tensor argument and returns its address."""
        number, self._arguments = self._arguments, self._arguments + 1
        return self.memory.add(PlanBuffer(role, size, number))

    def allocate(self, size: int) -> int:
        """Adds memory that the host code allocates and returns its address."""
        return self.memory.add(PlanBuffer(BufferRole.SCRATCH, size, begin=self.length))

    def free(self, address: int) -> None:
        """Frees memory that the host code has allocated."""
        self.memory.remove(address, self.length)

    def variable(self, code: PlanCode, symbol: str, size: int) -> int:
        """Adds a device variable and returns its address."""
        buffer = PlanBuffer(BufferRole.VARIABLE, size, code=self._code(code), symbol=symbol)
        return self.memory.add(buffer)

    def launch(
        self,
        kernel: RecordedKernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        values: list[bytes],
        shared: int,
    ) -> None:
        """Adds a launch; one without any workgroup does nothing.

        Raises:
            DeviceError: An argument holds an address that is in no buffer of the call.
        """
        if 0 in grid:
            return
        arguments = (PlanArgument(*take_references(value, self.memory.place)) for value in values)
        number = self._kernel(kernel)
        self._steps.append(LaunchStep(number, grid, block, shared, tuple(arguments)))

    def fill(self, target: TensorOnDevice, pattern: bytes) -> None:
        """Adds a fill, unless there are no elements."""
        if target.extent:
            self._steps.append(FillStep(self.view(target), pattern))

    def copy(self, source: TensorOnDevice, target: TensorOnDevice) -> None:
        """Adds a copy, unless there are no elements."""
        if target.extent:
            self._steps.append(CopyStep(self.view(source), self.view(target)))

    def upload(self, address: int, data: bytes) -> None:
        """Adds a constant."""
        if data:
            constant = take_references(data, self.memory.place)
            self._steps.append(UploadStep(*self.memory.place(address), *constant))

    def operator(
        self,
        name: str,
        overload: str,
        arguments: str,
        tensors: Sequence[TensorOnDevice],
        results: Sequence[TensorOnDevice] | None,
        told: bool,
    ) -> None:
        """Adds an operator of PyTorch, see `TorchOperatorStep`."""
        given = tuple(map(self.view, tensors))
        made = None if results is None else tuple(map(self.view, results))
        self._steps.append(TorchOperatorStep(name, overload, arguments, given, made, told))

    def read(self, tensor: TensorOnDevice, data: bytes) -> None:
        """Adds that the host code has read values."""
        self._steps.append(ReadStep(self.view(tensor), data))

    def view(self, tensor: TensorOnDevice) -> BufferView:
        """Returns the place of a tensor. One without elements may be anywhere.

        Raises:
            DeviceError: It is in no buffer of the call.
        """
        dtype = str(tensor.dtype).removeprefix("torch.")
        is_empty = not tensor.extent and self.memory.buffers
        place = (0, 0) if is_empty else self.memory.place(tensor.address)
        return BufferView(*place, tensor.shape, tensor.strides, dtype)

    def plan(self, outputs: tuple[BufferView | WrongOutput, ...] = ()) -> LaunchPlan:
        """Returns the call so far as a plan."""
        return LaunchPlan(
            self._arch,
            tuple(self._codes),
            tuple(self._kernels),
            tuple(self.memory.buffers),
            tuple(self._steps),
            outputs,
        )

    @property
    def mark(self) -> tuple[int, int, int, int]:
        """A place in the recording, for `rewind`."""
        return self.length, len(self._kernels), len(self._codes), len(self.memory.buffers)

    def rewind(self, mark: tuple[int, int, int, int]) -> None:
        """Removes the steps since a mark, and what they alone have used."""
        first, kernels, codes, buffers = mark
        del self._steps[first:], self._kernels[kernels:]
        self.memory.rewind(first, buffers)
        if all(buffer.code is None or buffer.code < codes for buffer in self.memory.buffers):
            del self._codes[codes:]

    def _kernel(self, kernel: RecordedKernel) -> int:
        planned = PlanKernel(self._code(kernel.code), kernel.name, kernel.shared)
        return _number_of(planned, self._kernels)

    def _code(self, code: PlanCode) -> int:
        return _number_of(code, self._codes)


def _number_of(item: Item, items: list[Item]) -> int:
    """Returns the number of an item in a list, to which it is added if it is not there."""
    if item not in items:
        items.append(item)
    return items.index(item)


def amd_code(content: bytes) -> PlanCode:
    """Returns a module for an AMD GPU, assembler text or a code object, as code of plans.

    The lines of a text name source files. Their folders are replaced, since they differ between
    processes and machines: equal kernels have equal plans.
    """
    if content.startswith(ELF):
        return PlanCode(CodeForm.HSACO, content)
    for folder, name in _folders():
        content = content.replace(folder, name)
    return PlanCode(CodeForm.ASSEMBLER, content)


@cache
def _folders() -> tuple[tuple[bytes, bytes], ...]:
    own = os.environ.get("TMPDIR", "").encode()
    places = (own, b"/candidate"), (os.path.dirname(triton.__file__).encode(), b"/triton")
    return tuple(place for place in places if place[0])
