"""Messages of the judge to a worker. Answers come back as JSON objects that the judge distrusts.

`kernel_gym.devices.answers` reads the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernel_gym.protocol import fields
from kernel_gym.protocol.fields import ELEMENT_TYPES
from kernel_gym.protocol.request import BadRequestError, Request, parsed, raw


@dataclass(frozen=True)
class Scalar:
    """An argument of a call that is a plain value."""

    value: object

    def to_json(self) -> dict[str, object]:
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

    def to_json(self) -> dict[str, object]:
        """The argument as a JSON object."""
        return {
            "start": self.start,
            "size": self.size,
            "offset": self.offset,
            "shape": list(self.shape),
            "strides": list(self.strides),
            "dtype": str(self.dtype).removeprefix("torch."),
        }


def _arena_argument(value: object, what: str) -> Scalar | ArenaTensor:
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


ArenaArguments = list[Scalar | ArenaTensor]
"""The arguments of one call."""
_arena_arguments = fields.listed(_arena_argument)

# -- a worker on a simulated GPU


EXTENSION_MODULE = "candidate"
"""Name of the module of an extension that is a file in HIP."""


class LoadOnSimulator(Request, verb="load"):
    """Builds and loads a candidate. For HIP the compiler has made two files of it."""

    language: str = parsed(fields.text)
    """"triton", "hip", "flydsl" or "tilelang" where Triton may launch nothing, "extension" for a
    module that builds an extension in HIP, or "extension file" for one that the compiler built."""
    entry: str = parsed(fields.text)
    """Name of the function to call."""
    source: str = parsed(fields.text)
    outputs: Sequence[int] = parsed(fields.wholes, ())
    """For HIP: which arguments of the launcher are outputs."""
    assembler: bytes = raw()
    """For HIP: the text of the device side."""
    library: bytes = raw()
    """For HIP: the shared object of the host side."""
    plain: bool = parsed(fields.truth, False)
    """For Triton: compile without optional passes, for a second opinion."""


class TellExtension(Request, verb="extension"):
    """Gives a module the extension whose source it has sent, as the compiler has built it."""

    assembler: bytes = raw()
    """The text of the device side."""
    library: bytes = raw()
    """The host side, a Python module."""


# -- a recorder, which has no device


class RecordCall(Request, verb="record"):
    """Calls the candidate once on tensors without data.

    The answer is the plan of its work. Before it may come questions about the plan so far: how long
    it takes, and in imported tasks what it has written. Each is answered by a `Tell...`.
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


class TellValues(Request, verb="values"):
    """Tells values that host code reads."""

    error: str = parsed(fields.text)
    """Why they are not told; empty when they are."""
    data: bytes = raw()


class TellForms(Request, verb="forms"):
    """Tells the form of the result of an operator, which depends on values."""

    form: object = parsed(fields.anything)
    """See `kernel_gym.protocol.operators.result_form`."""
    error: str = parsed(fields.text)


# -- the process of the HIP compiler


class BuildHip(Request, verb="build"):
    """Runs compilers over source files. The answer holds their messages; buffers hold the files."""

    files: dict[str, str] = parsed(fields.texts_by_name)
    """Texts by file name."""
    commands: list[list[str]] = parsed(fields.listed(fields.listed(fields.text)))
    results: list[str] = parsed(fields.listed(fields.text))
    """Files that the commands make."""
    in_turn: bool = parsed(fields.truth)
    """Whether a command runs only if those before it succeeded; else all run at a time."""
