"""Messages to the simulated GPU: from a worker, which may be hostile, and from the judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from kernel_gym.protocol import fields
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.protocol.request import Answer, Request, parsed, raw

# -- requests of a worker


@dataclass(frozen=True)
class Allocate(Request):
    """Asks for `size` bytes of device memory. The answer is `Allocated`."""

    verb: ClassVar[str] = "allocate"
    size: int = parsed(fields.whole)


@dataclass(frozen=True)
class Free(Request):
    """Frees an allocation by its address. A worker can free what it has allocated itself."""

    verb: ClassVar[str] = "free"
    address: int = parsed(fields.whole)


@dataclass(frozen=True)
class LoadKernel(Request):
    """Loads a kernel of an assembler text. The answer is `LoadedKernel`."""

    verb: ClassVar[str] = "load"
    text: str = parsed(fields.assembler)
    name: str | None = parsed(fields.or_none(fields.symbol))
    """The first kernel of the text when it is None."""
    shared: int | None = parsed(fields.or_none(fields.whole))
    """Bytes of LDS that replace those of the text, as Triton states them at load time."""


@dataclass(frozen=True)
class KernelNames(Request):
    """Asks for the names of the kernels in an assembler text."""

    verb: ClassVar[str] = "names"
    text: str = parsed(fields.assembler)


@dataclass(frozen=True)
class FindVariable(Request):
    """Asks where a device variable of an assembler text lies. The answer is `Variable`."""

    verb: ClassVar[str] = "variable"
    text: str = parsed(fields.assembler)
    name: str = parsed(fields.symbol)


@dataclass(frozen=True)
class Fill(Request):
    """Sets all elements of a tensor to one value."""

    verb: ClassVar[str] = "fill"
    tensor: TensorOnDevice = parsed(fields.device_tensor)
    value: float | int | bool = parsed(fields.number)


@dataclass(frozen=True)
class Copy(Request):
    """Copies a tensor to another one of the same dtype."""

    verb: ClassVar[str] = "copy"
    source: TensorOnDevice = parsed(fields.device_tensor)
    target: TensorOnDevice = parsed(fields.device_tensor)


@dataclass(frozen=True)
class NoteRefusal(Request):
    """Reports that the worker has refused a torch operator, for the labels of the record."""

    verb: ClassVar[str] = "refuse"
    operator: str = parsed(fields.label)


@dataclass(frozen=True)
class ReadClock(Request):
    """Asks for the modelled seconds in which the device has been busy, for autotuning."""

    verb: ClassVar[str] = "clock"


@dataclass(frozen=True)
class Upload(Request):
    """Copies bytes of the host to the device."""

    verb: ClassVar[str] = "upload"
    address: int = parsed(fields.whole)
    data: bytes = raw()


@dataclass(frozen=True)
class Launch(Request):
    """Launches a loaded kernel."""

    verb: ClassVar[str] = "launch"
    kernel: int = parsed(fields.whole)
    """The number that `LoadedKernel` has given."""
    grid: tuple[int, int, int] = parsed(fields.three)
    """Workgroups along each axis."""
    block: tuple[int, int, int] = parsed(fields.three)
    """Threads of a workgroup along each axis."""
    sizes: list[int] = parsed(fields.wholes)
    """Bytes of each argument in `data`."""
    lds: int = parsed(fields.whole)
    """Bytes of dynamic LDS."""
    data: bytes = raw()


# -- requests of the judge


@dataclass(frozen=True)
class SeedSamples(Request):
    """Seeds the draws of sampled workgroups and of audited launches."""

    verb: ClassVar[str] = "sample_from"
    seed: int = parsed(fields.integer)


@dataclass(frozen=True)
class BeginCall(Request):
    """Opens the device for the worker and clears all counters."""

    verb: ClassVar[str] = "begin"
    noop: bool = parsed(fields.truth)
    """Whether kernels are accepted and not run."""
    audit: str = parsed(fields.text, "off")
    """A value of `Audit`."""


@dataclass(frozen=True)
class EndCall(Request):
    """Closes the device for the worker. The answer is `CallRecord`."""

    verb: ClassVar[str] = "end"


@dataclass(frozen=True)
class AllocateForJudge(Request):
    """Asks for memory of an input or output, with its name in messages of faults."""

    verb: ClassVar[str] = "allocate"
    size: int = parsed(fields.whole)
    label: str = parsed(fields.text)


@dataclass(frozen=True)
class Locate(Request):
    """Asks which live allocation holds a range whole. The answer is `Located`."""

    verb: ClassVar[str] = "locate"
    address: int = parsed(fields.whole)
    size: int = parsed(fields.whole)


@dataclass(frozen=True)
class ReadFacts(Request):
    """Asks what the compiler made of the kernels of the last call. The answer is `Facts`."""

    verb: ClassVar[str] = "facts"


# -- answers


@dataclass(frozen=True)
class Done(Answer):
    """The request was carried out and has no result."""


@dataclass(frozen=True)
class Allocated(Answer):
    """The device address of new memory, all bytes of which are 0xFF."""

    address: int


@dataclass(frozen=True)
class OutOfMemory(Answer):
    """An allocation that does not fit."""

    error: str
    worker_bytes: int
    """Bytes that the worker has ever allocated: whether it is the one that filled the memory."""
    kind: str = "memory"


@dataclass(frozen=True)
class Refused(Answer):
    """A request that the device does not carry out."""

    error: str
    """At most 2000 inert characters."""
    kind: str
    """The type of the error: the worker's driver raises by it."""


@dataclass(frozen=True)
class LoadedKernel(Answer):
    """A loaded kernel: its number, the layout of its arguments, and what it uses."""

    kernel: int
    name: str
    args: list[list[Any]]
    """[bytes, kind of value, offset in bytes] of each argument."""
    registers: int
    spills: int
    max_workgroup: int
    total_registers: int
    lds: int
    scratch: int


@dataclass(frozen=True)
class Names(Answer):
    """The kernels in an assembler text."""

    names: list[str]


@dataclass(frozen=True)
class Variable(Answer):
    """Address and bytes of a device variable; zeros when there is none."""

    address: int
    size: int


@dataclass(frozen=True)
class Clock(Answer):
    """Modelled busy seconds since the start of the device."""

    seconds: float


@dataclass(frozen=True)
class Located(Answer):
    """The allocation that holds a range: its start, size and label; None when there is none."""

    allocation: dict[str, Any] | None


@dataclass(frozen=True)
class Facts(Answer):
    """Registers, LDS and occupancy of kernels, one JSON object each."""

    kernels: list[dict[str, Any]]


@dataclass(frozen=True)
class CallRecord(Answer):
    """What the device has seen of a call. The judge believes this, not the worker."""

    seconds: float
    """Modelled time."""
    launches: int
    launch_seconds: float
    """The part of `seconds` that is the cost of launching."""
    kernels: list[dict[str, Any]]
    tuned: bool
    """Whether several new machine codes of one kernel were tried."""
    codes: list[str]
    """Digests of the machine codes that were launched."""
    audited: list[str]
    """Those of them with an audited launch."""
    refused: list[str]
    """Operators that the worker has reported as refused."""
    fault: dict[str, Any] | None
    """The first fault, which ends the call."""
