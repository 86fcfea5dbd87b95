"""The parts of a launch plan, as frozen types. `kernel_gym.plans.parse` reads and checks them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

ELEMENT_BYTES = {
    **dict.fromkeys(("bool", "uint8", "int8"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"), 1),
    "float8_e8m0fnu": 1,
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
"""Bytes of an element, by the name that PyTorch gives its type."""


class CodeForm(StrEnum):
    """The form of compiled code."""

    ASSEMBLER = "assembler"
    """Assembler text for an AMD GPU, for the simulator."""
    HSACO = "hsaco"
    """A linked code object for an AMD GPU."""
    CUBIN = "cubin"
    """A linked code object for an NVIDIA GPU."""


class BufferRole(StrEnum):
    """Where the memory of a buffer comes from."""

    INPUT = "input"
    """The judge fills it. Its number counts the tensors among the arguments of the call."""
    OUTPUT = "output"
    """The judge allocates it and reads it, for launchers in C. Its number counts on from the
    inputs."""
    SCRATCH = "scratch"
    """The candidate has allocated it. It is poisoned before each call."""
    VARIABLE = "variable"
    """A device variable of a code object."""


@dataclass(frozen=True)
class PlanCode:
    """A code object."""

    form: CodeForm
    content: bytes


@dataclass(frozen=True)
class PlanKernel:
    """A kernel of a code object.

    Args:
        code: The number of the code object.
        name: Its symbol.
        shared: Bytes of shared memory that replace those of the code, as Triton states them when it
            loads a kernel; None for those of the code.
    """

    code: int
    name: str
    shared: int | None = None


@dataclass(frozen=True)
class PlanBuffer:
    """A piece of device memory.

    Args:
        role: Where its memory comes from.
        size: Bytes.
        number: Which input or output it is; 0 for others.
        begin: The number of the step before which it is allocated.
        end: The number of the step before which it is freed; None if it outlives the call.
        code: The code object of a variable.
        symbol: The name of a variable.
    """

    role: BufferRole
    size: int
    number: int = 0
    begin: int = 0
    end: int | None = None
    code: int | None = None
    symbol: str = ""

    def lives_at(self, step: int) -> bool:
        """Whether the buffer is allocated while a step runs."""
        return self.begin <= step and (self.end is None or step < self.end)


@dataclass(frozen=True)
class BufferView:
    """A tensor in a buffer.

    Args:
        buffer: The number of the buffer.
        offset: Bytes from the start of the buffer to the first element.
        shape: Elements along each axis.
        strides: Elements between two neighbours along each axis, not negative.
        dtype: A key of `ELEMENT_BYTES`.
    """

    buffer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, repeated ones included."""
        return math.prod(self.shape) * ELEMENT_BYTES[self.dtype]

    @property
    def extent(self) -> int:
        """Bytes from the start of the first element to the end of the last one."""
        if 0 in self.shape:
            return 0
        steps = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (1 + steps) * ELEMENT_BYTES[self.dtype]

    @property
    def repeats(self) -> bool:
        """Whether two elements share memory along an axis of stride zero."""
        return any(s == 0 and n > 1 for n, s in zip(self.shape, self.strides, strict=True))


@dataclass(frozen=True)
class BufferReference:
    """The address of a place in a buffer, which the launcher writes into an argument or a constant.

    Args:
        at: Bytes from the start of the argument or constant, a multiple of 8.
        buffer: The number of the buffer.
        offset: Bytes from the start of the buffer, at most its size.
    """

    at: int
    buffer: int
    offset: int


@dataclass(frozen=True)
class PlanArgument:
    """An argument of a launch: its bytes, little-endian, with zeros where addresses belong."""

    data: bytes
    references: tuple[BufferReference, ...] = ()


@dataclass(frozen=True)
class LaunchStep:
    """Starts a kernel.

    Args:
        kernel: The number of the kernel.
        grid: Workgroups along each axis.
        block: Threads of a workgroup along each axis.
        shared: Bytes of dynamic shared memory.
        arguments: The explicit arguments, in order.
        copies: Whether it stands for a copy or a fill. Only the judge makes such launches.
    """

    kernel: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[PlanArgument, ...]
    copies: bool = False


@dataclass(frozen=True)
class FillStep:
    """Sets all elements of a tensor to the bytes of one element."""

    target: BufferView
    pattern: bytes


@dataclass(frozen=True)
class CopyStep:
    """Copies a tensor to another one of the same shape and type."""

    source: BufferView
    target: BufferView


@dataclass(frozen=True)
class UploadStep:
    """Writes a constant into a buffer.

    Args:
        buffer: The number of the buffer.
        offset: Bytes from its start.
        data: The constant, with zeros where addresses belong.
        references: The addresses in it.
    """

    buffer: int
    offset: int
    data: bytes
    references: tuple[BufferReference, ...] = ()


@dataclass(frozen=True)
class TorchOperatorStep:
    """Runs an operator of PyTorch. The launcher runs it itself, where the task permits it.

    Args:
        name: Such as `aten::add`.
        overload: Such as `Tensor`; `default` for none.
        arguments: JSON of all arguments, as `kernel_gym.plans.operators` describes it.
        tensors: The tensors among the arguments, in order.
        results: Where the new tensors go that it returns, in order; None if the launcher is asked
            for their form.
        told: Whether the launcher was asked, since the form depends on values.
    """

    name: str
    overload: str
    arguments: str
    tensors: tuple[BufferView, ...]
    results: tuple[BufferView, ...] | None
    told: bool = False


@dataclass(frozen=True)
class ReadStep:
    """States values that the host code has read: memory must hold them.

    Args:
        source: A tensor.
        data: The bytes of its elements in order, as the launcher has told them.
    """

    source: BufferView
    data: bytes


PlanStep = LaunchStep | FillStep | CopyStep | UploadStep | TorchOperatorStep | ReadStep
"""One piece of work. Steps run in order, each after the end of the one before."""


@dataclass(frozen=True)
class WrongOutput:
    """A returned value that is no tensor on the device."""

    text: str


@dataclass(frozen=True)
class LaunchPlan:
    """The work of one call.

    Args:
        arch: The architecture that the code is for, such as `gfx942` or `sm_90`.
        codes: Code objects.
        kernels: Their kernels that are launched.
        buffers: Pieces of memory.
        steps: The work, in order.
        outputs: The values that the call returns.
    """

    arch: str
    codes: tuple[PlanCode, ...]
    kernels: tuple[PlanKernel, ...]
    buffers: tuple[PlanBuffer, ...]
    steps: tuple[PlanStep, ...]
    outputs: tuple[BufferView | WrongOutput, ...]

    @property
    def launches(self) -> int:
        """How many steps start a kernel."""
        return sum(isinstance(step, LaunchStep) for step in self.steps)

    @property
    def constants_bytes(self) -> int:
        """Bytes of all constants, and of all values that were read."""
        return sum(len(step.data) for step in self.steps if isinstance(step, UploadStep | ReadStep))

    @property
    def read_bytes(self) -> int:
        """Bytes that the host code has read."""
        return sum(len(step.data) for step in self.steps if isinstance(step, ReadStep))

    @property
    def depends_on_values(self) -> bool:
        """Whether host code has read values or sizes, so that the plan is of one call."""
        return any(
            isinstance(step, ReadStep) or (isinstance(step, TorchOperatorStep) and step.told)
            for step in self.steps
        )
