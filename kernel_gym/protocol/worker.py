"""Messages of the judge to a worker. Answers come back as JSON objects that the judge distrusts.

`kernel_gym.devices.answers` and `kernel_gym.devices.gpu.blocks` read the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kernel_gym.protocol import fields
from kernel_gym.protocol.fields import ELEMENT_TYPES, TensorOnDevice
from kernel_gym.protocol.request import BadRequestError, Request, parsed, raw


@dataclass(frozen=True)
class Scalar:
    """An argument of a call that is a plain value."""

    value: Any

    def to_json(self) -> dict[str, Any]:
        """The argument as a JSON object."""
        return {"value": self.value}


@dataclass(frozen=True)
class ArenaTensor:
    """A tensor in the memory that the judge and a worker on a GPU share.

    Args:
        start: Bytes from the start of the arena to the storage of the tensor.
        size: Bytes of the storage.
        offset: Elements from the start of the storage to the first element.
        shape: Elements along each axis.
        strides: Elements between two neighbours along each axis.
        dtype: Type of the elements.
    """

    start: int
    size: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    def to_json(self) -> dict[str, Any]:
        """The argument as a JSON object."""
        return {
            "start": self.start,
            "size": self.size,
            "offset": self.offset,
            "shape": list(self.shape),
            "strides": list(self.strides),
            "dtype": str(self.dtype).removeprefix("torch."),
        }


def _device_argument(value: Any, what: str) -> Scalar | TensorOnDevice:
    described = fields.mapping(value, what)
    if "value" in described:
        return Scalar(described["value"])
    return fields.device_tensor(described, what)


def _arena_argument(value: Any, what: str) -> Scalar | ArenaTensor:
    described = fields.mapping(value, what)
    if "value" in described:
        return Scalar(described["value"])
    dtype = ELEMENT_TYPES.get(fields.text(described.get("dtype"), what))
    if dtype is None:
        raise BadRequestError(f"{what} is of an unknown type")
    return ArenaTensor(
        fields.whole(described.get("start"), what),
        fields.whole(described.get("size"), what),
        fields.whole(described.get("offset"), what),
        tuple(fields.wholes(described.get("shape"), what)),
        tuple(fields.wholes(described.get("strides"), what)),
        dtype,
    )


DeviceArguments = list[Scalar | TensorOnDevice]
"""The arguments of one call on a simulated GPU."""
ArenaArguments = list[Scalar | ArenaTensor]
"""The arguments of one call on a real GPU."""
Ranges = list[list[int]]
"""Parts of the arena: [start, size] in bytes each."""
_device_arguments = fields.listed(_device_argument)
_arena_arguments = fields.listed(_arena_argument)
_ranges = fields.listed(fields.wholes)

# -- a worker on a simulated GPU


class LoadOnSimulator(Request, verb="load"):
    """Builds and loads a candidate. For HIP the compiler has made two files of it."""

    language: str = parsed(fields.text)
    entry: str = parsed(fields.text)
    """Name of the function to call."""
    source: str = parsed(fields.text)
    outputs: Sequence[int] = parsed(fields.wholes, ())
    """For HIP: which arguments of the launcher are outputs."""
    assembler: bytes = raw()
    """For HIP: the text of the device side."""
    library: bytes = raw()
    """For HIP: the shared object of the host side."""


class CallOnSimulator(Request, verb="call"):
    """Calls the candidate once. The answer describes each returned value."""

    args: DeviceArguments = parsed(_device_arguments)


# -- a recorder, which has no device


class RecordCall(Request, verb="record"):
    """Calls the candidate once on tensors without data.

    The answer is the plan of its work. Before it may come plans to be timed, each of which is
    answered by `TellSeconds`.
    """

    args: ArenaArguments = parsed(_arena_arguments)
    """The places of tensors have no meaning here."""
    outputs: list[int] = parsed(fields.wholes)
    """For HIP: which arguments the judge allocates as outputs."""


class TellSeconds(Request, verb="seconds"):
    """Tells the time of a plan, for host code that tunes itself on train data."""

    seconds: float = parsed(fields.number)
    error: str = parsed(fields.text)
    """Why the plan could not be run; empty when it was."""


# -- a worker on a real GPU


class OpenGpu(Request, verb="open"):
    """Makes the GPU context and opens the arena."""


class Precompile(Request, verb="precompile"):
    """Compiles a Triton candidate before there is a GPU context."""

    entry: str = parsed(fields.text)
    source: str = parsed(fields.text)
    properties: dict[str, Any] = parsed(fields.mapping)
    """The properties that the GPU reports."""
    calls: list[ArenaArguments] = parsed(fields.listed(_arena_arguments))


class LoadOnGpu(Request, verb="load"):
    """Builds and loads a candidate, a baseline or a reference."""

    language: str = parsed(fields.text)
    entry: str = parsed(fields.text)
    source: str = parsed(fields.text)
    outputs: Sequence[int] = parsed(fields.wholes, ())
    """For HIP: which arguments of the launcher are outputs."""
    log: str = parsed(fields.text, "")
    """For HIP: what the compiler printed."""
    library: bytes = raw()
    """For HIP: the shared object."""


class CompileCalls(Request, verb="compile"):
    """Compiles what calls need, without running it."""

    calls: list[ArenaArguments] = parsed(fields.listed(_arena_arguments))


class CallOnGpu(Request, verb="call"):
    """Calls the candidate once and copies its outputs to places in the arena."""

    args: ArenaArguments = parsed(_arena_arguments)
    output_places: Ranges = parsed(_ranges)
    output_sizes: list[int] = parsed(fields.wholes)
    """Bytes of each output: memory of these sizes is poisoned before the call."""
    noop: bool = parsed(fields.truth)
    """Whether launches are counted and not made."""


class UseInputs(Request, verb="use_inputs"):
    """Sets the pool of inputs for timed calls and warms up on them."""

    sets: list[ArenaArguments] = parsed(fields.listed(_arena_arguments))
    output_sizes: list[int] = parsed(fields.wholes)


class TimeCalls(Request, verb="block"):
    """Times calls with cold caches."""

    count: int = parsed(fields.whole)
    lead: int = parsed(fields.whole)
    """Flushes of the caches before the first call, in which the host gets ahead of the GPU."""


class CaptureGraph(Request, verb="capture"):
    """Captures one call for each set of inputs as one graph."""


class TimeReplay(Request, verb="replay"):
    """Times one replay of the graph with cold caches."""

    lead: int = parsed(fields.whole)
    """Flushes of the caches before the replay, in which the host gets ahead of the GPU."""


class CopyArena(Request, verb="copy_arena"):
    """Makes only the copies of the arena that go with every request."""


class ChangeCpu(Request, verb="change_cpu"):
    """Continues on another CPU."""


class ReleaseMemory(Request, verb="release"):
    """Forgets the inputs and graphs of timed calls and releases their memory."""


class CopyOutputs(Request, verb="copy_outputs"):
    """Copies the outputs of some of the last timed calls to places in the arena."""

    calls: list[int] = parsed(fields.wholes)
    """Each call, counted backwards from the last one."""
    output_places: list[Ranges] = parsed(fields.listed(_ranges))


class ReadGpuFacts(Request, verb="facts"):
    """Asks what the compiler made of the kernels."""


class CrossCompile(Request, verb="cross_compile"):
    """Compiles the Triton kernels seen so far for an AMD architecture and describes them."""

    arch: str = parsed(fields.text)


@dataclass(frozen=True)
class ArenaCopies:
    """Copies between the arena and the host, where judge and worker cannot share GPU memory.

    They are two keys of the JSON object beside the fields of any request to a GPU's worker.
    """

    before: Ranges
    """Parts that the worker copies from the host before the request."""
    after: Ranges
    """Parts that the worker copies to the host after it."""

    def to_json(self) -> dict[str, Any]:
        """The two keys."""
        return {"copy_in": self.before, "copy_out": self.after}

    @classmethod
    def taken_from(cls, header: dict[str, Any]) -> ArenaCopies:
        """Removes the two keys from a JSON object, if they are there."""
        return cls(
            *(_ranges(header.pop(name, []), name) for name in ("copy_in", "copy_out")),
        )


# -- the process of the HIP compiler


class BuildHip(Request, verb="build"):
    """Runs compilers over source files. The answer holds their messages; buffers hold the files."""

    files: dict[str, str] = parsed(fields.mapping)
    """Texts by file name."""
    commands: list[list[str]] = parsed(fields.listed(fields.listed(fields.text)))
    results: list[str] = parsed(fields.listed(fields.text))
    """Files that the commands make."""
