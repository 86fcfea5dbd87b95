"""Messages to the simulated GPU: from a worker, which may be hostile, and from the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from kernel_gym.protocol import fields
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.protocol.request import Answer, Request, parsed, raw

# -- requests of a worker


class Allocate(Request, verb="allocate"):
    """Asks for `size` bytes of device memory. The answer is `Allocated`."""

    size: int = parsed(fields.whole)


class Free(Request, verb="free"):
    """Frees an allocation by its address. A worker can free what it has allocated itself."""

    address: int = parsed(fields.whole)


class LoadKernel(Request, verb="load"):
    """Loads a kernel of a module. The answer is `LoadedKernel`."""

    name: str | None = parsed(fields.or_none(fields.symbol))
    """The first kernel of the module when it is None."""
    shared: int | None = parsed(fields.or_none(fields.whole))
    """Bytes of LDS of each launch, as Triton states them at load time."""
    code: bytes = raw()
    """An assembler text or a code object."""


class KernelNames(Request, verb="names"):
    """Asks for the names of the kernels in a module."""

    code: bytes = raw()


class FindVariable(Request, verb="variable"):
    """Asks where a device variable of a module lies. The answer is `Variable`."""

    name: str = parsed(fields.symbol)
    code: bytes = raw()


class Fill(Request, verb="fill"):
    """Sets all elements of a tensor to one value."""

    tensor: TensorOnDevice = parsed(fields.device_tensor)
    value: float | int | bool = parsed(fields.number)


class Copy(Request, verb="copy"):
    """Copies a tensor to another one of the same dtype."""

    source: TensorOnDevice = parsed(fields.device_tensor)
    target: TensorOnDevice = parsed(fields.device_tensor)


class Upload(Request, verb="upload"):
    """Copies bytes of the host to the device."""

    address: int = parsed(fields.whole)
    data: bytes = raw()


class LaunchKernel(Request, verb="launch"):
    """Launches a loaded kernel."""

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


class SeedSamples(Request, verb="sample_from"):
    """Seeds the draws of sampled workgroups and of audited launches."""

    seed: int = parsed(fields.integer)


class BeginCall(Request, verb="begin"):
    """Opens the device for the worker and clears all counters."""

    noop: bool = parsed(fields.truth)
    """Whether kernels are accepted and not run."""
    audit: str = parsed(fields.text, "off")
    """A value of `Audit`."""
    waits_by_compiler: bool = parsed(fields.truth, False)
    """Whether the candidate's language leaves all waits for LDS to its compiler."""
    tuning: bool = parsed(fields.truth, False)
    """Whether the call compares kernels for host code that tunes itself: it decides nothing."""
    samples: int | None = parsed(fields.or_none(fields.integer), None)
    """A seed of the workgroups that are sampled in this call; None: those of the session."""


class RunPlan(Request, verb="run_plan"):
    """Executes a launch plan. The answer is `PlanDone`, or `RequestRefused`."""

    plan: dict[str, object] = parsed(fields.mapping)
    """The JSON of the plan, in the form of `kernel_gym.plans.write`."""
    addresses: list[int] = parsed(fields.wholes)
    """The device addresses of the inputs and outputs, by the number of the argument."""
    codes: bytes = raw()
    constants: bytes = raw()


class EndCall(Request, verb="end"):
    """Closes the device for the worker. The answer is `CallRecord`."""


class SwapOrders(Request, verb="swap_orders"):
    """Exchanges memory with that which the launches of the call leave in another order."""


class AllocateForJudge(Request, verb="allocate"):
    """Asks for memory of an input or output, with its name in messages of faults."""

    size: int = parsed(fields.whole)
    label: str = parsed(fields.text)


class Locate(Request, verb="locate"):
    """Asks which live allocation holds a range whole. The answer is `LocatedAllocation`."""

    address: int = parsed(fields.whole)
    size: int = parsed(fields.whole)


class ReadFacts(Request, verb="facts"):
    """Asks for the compiler's facts on the kernels of the last call: `CompiledFacts`."""


# -- answers


class Done(Answer):
    """The request was carried out and has no result."""


class Allocated(Answer):
    """The device address of new memory, all bytes of which are 0xFF."""

    address: int


class OutOfMemory(Answer):
    """An allocation that does not fit."""

    error: str
    kind: str = "memory"


class RequestRefused(Answer):
    """A request that the device does not carry out."""

    error: str
    """At most 2000 inert characters."""
    kind: str
    """The type of the error: the worker's driver raises by it."""


class LoadedKernel(Answer):
    """A loaded kernel: its number, the layout of its arguments, and what it uses."""

    kernel: int
    name: str
    args: list[list[object]]
    """[bytes, kind of value, offset in bytes] of each argument."""
    registers: int
    spills: int
    max_workgroup: int
    total_registers: int
    lds: int
    scratch: int


class PlanDone(Answer):
    """The end of a plan."""

    buffers: list[int]
    """The address of each buffer that is still allocated, 0 for others."""
    owned: list[int]
    """Those of them that the plan has allocated. The judge frees them."""
    seconds: list[float]
    """Modelled seconds of each step."""
    form: object
    """The form of the result of a last operator whose results have no place."""


class Names(Answer):
    """The kernels in an assembler text."""

    names: list[str]


class Variable(Answer):
    """Address and bytes of a device variable; zeros when there is none."""

    address: int
    size: int


class AllocatedRange(TypedDict):
    """A live allocation: its first address, its bytes and its name in messages."""

    start: int
    size: int
    label: str


class LocatedAllocation(Answer):
    """The allocation that holds a range; None when there is none."""

    allocation: AllocatedRange | None


class CompiledFacts(Answer):
    """Registers, LDS and occupancy of kernels, one JSON object each."""

    kernels: Sequence[Mapping[str, object]]


class CallRecord(Answer):
    """The device's own record of a call. The judge believes this, not the worker."""

    seconds: float
    """Modelled time."""
    launches: int
    launch_seconds: float
    """The part of `seconds` that is the cost of launching."""
    uncalibrated: str
    """Why `seconds` has no interval; empty if it has one."""
    kernels: Sequence[Mapping[str, object]]
    tuned: bool
    """Whether several new machine codes of one kernel were tried."""
    codes: list[str]
    """Digests of the machine codes that were launched."""
    audited: list[str]
    """Those of them with an audited launch."""
    operators: list[str]
    """Operators of PyTorch that compute and that were run, by name."""
    operator_seconds: float
    """The part of `seconds` that they took."""
    fault: dict[str, object] | None
    """The first fault, which ends the call."""
    compiler_fault: dict[str, object] | None
    """The first race that the compiler of a kernel has made."""
    other_order: bool
    """Whether memory depends on the order of workgroups and waves, see `SwapOrders`."""
