"""Parses a worker's answers into typed, bounded values.

No other code reads a worker's messages. An answer is compared with what the task expects before any
tensor is built or memory is read, so that the judge's work and memory depend on the task alone. An
answer that violates the protocol raises `BadAnswerError`, which is the candidate's failure.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from kernel_gym.devices.base import Failed, FailureKind, InfraError
from kernel_gym.devices.operators import COMPUTING
from kernel_gym.inert import inert_line, inert_text
from kernel_gym.protocol.fields import ELEMENT_TYPES
from kernel_gym.tasks.problem import Problem

log = logging.getLogger(__name__)

MAX_OUTPUTS = 4096
"""Most entries of a list of outputs. A list of the wrong length is counted, not read."""
MAX_AXES = 16
MAX_REFUSED = 16
"""Most refused operators that one call records."""
MAX_OPERATOR = 120
"""Most characters of an operator's name."""
MAX_BELIEVED = 1 << 28
"""Most bytes of an output that a reference worker states itself."""
_LARGEST = 1 << 62
NO_TENSOR = "something that is no tensor"


class BadAnswerError(Exception):
    """A worker's answer violates the protocol. The message is inert."""


@dataclass(frozen=True)
class StatedOutput:
    """One output as the task states it: contiguous, on the device."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    place: str = ""
    """The input that holds it: its first element has the input's address. Empty for a new one."""

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class PlacedOutput:
    """A returned tensor with the expected dtype, shape and strides. Its address is not checked."""

    address: int
    """The address of the first element."""
    start: int = -1
    """Its offset in the arena of a GPU, or -1."""


@dataclass(frozen=True)
class Wrong:
    """A returned value that is not what the task expects."""

    problem: str
    """The found and the expected form of the outputs, in one line."""


@dataclass(frozen=True)
class CallAnswer:
    """A worker's answer to a call: as many outputs as it returned."""

    outputs: tuple[PlacedOutput | Wrong, ...]
    launches: int = 0
    refused: tuple[str, ...] = ()
    operators: frozenset[str] = frozenset()
    """Operators that compute, as the worker reports them."""


def stated_outputs(problem: Problem, dims: Mapping[str, int]) -> tuple[StatedOutput, ...]:
    """Returns the outputs that a task expects from a call."""
    shapes = problem.output_shapes(dims)
    return tuple(
        StatedOutput(o.name, tuple(shapes[o.name]), o.dtype, o.place)
        for o in problem.outputs_at(dims)
    )


def misplaced(stated: StatedOutput, found: int, expected: Mapping[str, int]) -> str:
    """Describes an output that is not the in-place input that it should be; empty if it is.

    Args:
        stated: The output.
        found: The address of its first element.
        expected: The address of the first element of each input, by name.
    """
    if not stated.place or found == expected[stated.place]:
        return ""
    return misplaced_text(stated.place)


def misplaced_text(name: str) -> str:
    """Describes an output that is not the input of this name."""
    return f"found a tensor of its own, expected the input {name!r}, written in place"


def believed_outputs(answer: Mapping[str, object]) -> tuple[StatedOutput, ...]:
    """Returns the outputs as the reference worker of an imported task describes them.

    Raises:
        BadAnswerError: Its answer violates the protocol, or a value is no contiguous tensor.
    """
    described = answer.get("outputs")
    if not isinstance(described, list) or len(described) > MAX_OUTPUTS:
        raise BadAnswerError("the worker broke the protocol: its outputs are no short list")
    stated = []
    for number, output in enumerate(described):
        shape = _sizes(output.get("shape")) if isinstance(output, dict) else None
        dtype = ELEMENT_TYPES.get(str(output.get("dtype"))) if isinstance(output, dict) else None
        if shape is None or dtype is None or min(shape, default=0) < 0:
            raise BadAnswerError(f"output {number} is no device tensor")
        if math.prod(shape) * dtype.itemsize > MAX_BELIEVED:
            raise BadAnswerError(f"output {number} has shape {shape}: it is too large")
        stated.append(StatedOutput(f"out{number}", shape, dtype))
    return tuple(stated)


def parse_call(answer: Mapping[str, object], stated: Sequence[StatedOutput]) -> CallAnswer:
    """Reads the answer to a call.

    Args:
        answer: A JSON object from the worker.
        stated: The outputs that the task expects.

    Raises:
        BadAnswerError: It violates the protocol.
    """
    described = answer.get("outputs")
    if not isinstance(described, list) or len(described) > MAX_OUTPUTS:
        raise BadAnswerError("the worker broke the protocol: its outputs are no short list")
    if len(described) != len(stated):
        outputs: tuple[PlacedOutput | Wrong, ...] = (Wrong("not looked at"),) * len(described)
    else:
        outputs = tuple(map(parse_output, described, stated))
    launches = answer.get("launches", 0)
    if type(launches) is not int or not 0 <= launches < 1 << 31:
        raise BadAnswerError("the worker broke the protocol: its number of launches is none")
    refused = parse_refused(answer.get("refused", []))
    return CallAnswer(outputs, launches, refused, _computed(answer.get("operators", [])))


def parse_output(described: object, stated: StatedOutput) -> PlacedOutput | Wrong:
    """Compares one described output with the one that the task expects. Builds no tensor."""
    if not isinstance(described, dict):
        return Wrong(f"found {NO_TENSOR}, expected a device tensor")
    if "wrong" in described:
        text = inert_line(described["wrong"], 200)
        return Wrong(f"found {text}, expected a device tensor")
    shape, strides = _sizes(described.get("shape")), _sizes(described.get("strides"))
    dtype, address = described.get("dtype"), _place(described.get("address"))
    if shape is None or strides is None or len(shape) != len(strides):
        return Wrong(f"found {NO_TENSOR}, expected a device tensor")
    if not isinstance(dtype, str) or address < 0:
        return Wrong(f"found {NO_TENSOR}, expected a device tensor")
    if shape != stated.shape:
        return Wrong(f"found shape {shape}, expected {stated.shape}")
    if f"torch.{dtype}" != str(stated.dtype):
        return Wrong(f"found torch.{inert_line(dtype, 40)}, expected {stated.dtype}")
    if not _contiguous(shape, strides):
        return Wrong(f"found strides {strides}, expected contiguous")
    return PlacedOutput(address, _place(described.get("start")))


def parse_refused(value: object) -> tuple[str, ...]:
    """Parses the names of refused operators.

    Raises:
        BadAnswerError: The value is no list.
    """
    if not isinstance(value, list):
        raise BadAnswerError("the worker broke the protocol: its refused operators are no list")
    return tuple(inert_line(name, MAX_OPERATOR) for name in value[:MAX_REFUSED])


def _computed(value: object) -> frozenset[str]:
    """Parses the names of operators that compute; others are left out."""
    if not isinstance(value, list):
        raise BadAnswerError("the worker broke the protocol: its operators are no list")
    return frozenset(n for n in value[: len(COMPUTING)] if isinstance(n, str) and n in COMPUTING)


def parse_failure(error: object) -> Failed:
    """Parses a worker's report of its own failure. A false report harms the candidate only."""
    error = error if isinstance(error, dict) else {}
    kind = FailureKind.COMPILE if error.get("kind") == "compile" else FailureKind.RUNTIME
    name = inert_line(error.get("type", "Error"), 100)
    message = inert_line(error.get("message", ""), 500)
    return Failed(kind, f"{name}: {message}", inert_text(error.get("detail", "")))


@contextmanager
def reading_an_answer() -> Iterator[None]:
    """Turns any error while an answer is read into the candidate's failure.

    Raises:
        BadAnswerError: Any exception was raised within, except `InfraError`.
    """
    try:
        yield
    except (BadAnswerError, InfraError):
        raise
    except Exception as error:
        log.exception("a worker's answer raised")
        what = f"{type(error).__name__}: {error}"
        raise BadAnswerError(inert_line(f"what was returned cannot be read: {what}", 300)) from None


def _place(value: object) -> int:
    """Parses an address or offset; -1 if it is none."""
    return value if type(value) is int and 0 <= value < _LARGEST else -1


def _sizes(value: object) -> tuple[int, ...] | None:
    """Parses sizes or strides; None if they are none."""
    if not isinstance(value, list) or len(value) > MAX_AXES:
        return None
    whole = all(type(size) is int and -_LARGEST < size < _LARGEST for size in value)
    return tuple(value) if whole else None


def _contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether elements are contiguous in memory. Axes of length one may have any stride."""
    if 0 in shape:
        return True
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
