"""Reads a plan of a hostile process: JSON and two pieces of bytes become types, with bounds.

The form on the pipe is what `kernel_gym.plans.write` makes. Whatever is wrong is a `BadPlanError`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kernel_gym.inert import shown
from kernel_gym.plans import limits
from kernel_gym.plans.check import check_plan
from kernel_gym.plans.reading import (
    BadPlanError,
    binary,
    fields,
    name,
    optional,
    several,
    whole,
)
from kernel_gym.plans.types import (
    ELEMENT_BYTES,
    BufferReference,
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

VERSION = 1
"""The version of the form. A plan of another one is refused."""
_MAX_STRIDE = limits.MAX_MEMORY_BYTES


def parse_plan(header: object, codes: bytes, constants: bytes) -> LaunchPlan:
    """Reads a plan and checks it.

    Args:
        header: The JSON object.
        codes: All code objects, one behind the other.
        constants: All constants, likewise.

    Raises:
        BadPlanError: It is malformed, beyond a bound, or it points outside its buffers.
    """
    values = fields(header, "a plan", "version arch codes kernels buffers steps outputs")
    whole(values["version"], "the version", VERSION, VERSION)
    pieces = _Pieces(codes, "code objects", limits.MAX_CODES_BYTES)
    data = _Pieces(constants, "constants", limits.MAX_CONSTANTS_BYTES)
    plan = LaunchPlan(
        name(values["arch"], "the architecture", 64),
        several(values["codes"], "codes", limits.MAX_CODES, _code_reader(pieces)),
        several(values["kernels"], "kernels", limits.MAX_KERNELS, _kernel),
        several(values["buffers"], "buffers", limits.MAX_BUFFERS, _buffer),
        several(values["steps"], "steps", limits.MAX_STEPS, _step_reader(data)),
        several(values["outputs"], "outputs", limits.MAX_OUTPUTS, _output),
    )
    pieces.check_end()
    data.check_end()
    check_plan(plan)
    return plan


class _Pieces:
    """Takes pieces of bytes from the front."""

    def __init__(self, data: bytes, what: str, most: int) -> None:
        if len(data) > most:
            raise BadPlanError(f"{len(data)} bytes of {what}, expected at most {most}")
        self._data, self._what, self._place = data, what, 0

    def take(self, size: int) -> bytes:
        piece = self._data[self._place : self._place + size]
        self._place += size
        if len(piece) != size:
            raise BadPlanError(f"there are fewer bytes of {self._what} than the plan says")
        return piece

    def check_end(self) -> None:
        if self._place != len(self._data):
            raise BadPlanError(f"there are more bytes of {self._what} than the plan says")


def _code_reader(pieces: _Pieces) -> Callable[[object, str], PlanCode]:
    def read(value: object, what: str) -> PlanCode:
        given = fields(value, what, "form size")
        if given["form"] not in list(CodeForm):
            raise BadPlanError(f"{what} has the form {shown(given['form'])}, which is unknown")
        size = whole(given["size"], f"the size of {what}", limits.MAX_CODE_BYTES)
        return PlanCode(CodeForm(given["form"]), pieces.take(size))

    return read


def _kernel(value: object, what: str) -> PlanKernel:
    given = fields(value, what, "code name shared")
    return PlanKernel(
        whole(given["code"], f"the code of {what}", limits.MAX_CODES),
        name(given["name"], f"the name of {what}", limits.MAX_NAME_CHARACTERS),
        optional(given["shared"], f"the shared memory of {what}", limits.MAX_SHARED_BYTES),
    )


def _buffer(value: object, what: str) -> PlanBuffer:
    given = fields(value, what, "role size number begin end code symbol")
    if given["role"] not in list(BufferRole):
        raise BadPlanError(f"{what} has the role {shown(given['role'])}, which is unknown")
    return PlanBuffer(
        BufferRole(given["role"]),
        whole(given["size"], f"the size of {what}", limits.MAX_MEMORY_BYTES),
        whole(given["number"], f"the number of {what}", limits.MAX_BUFFERS),
        whole(given["begin"], f"the begin of {what}", limits.MAX_STEPS),
        optional(given["end"], f"the end of {what}", limits.MAX_STEPS),
        optional(given["code"], f"the code of {what}", limits.MAX_CODES),
        name(given["symbol"], f"the symbol of {what}", limits.MAX_NAME_CHARACTERS),
    )


def _view(value: object, what: str) -> BufferView:
    given = fields(value, what, "buffer offset shape strides dtype")
    if not isinstance(given["dtype"], str) or given["dtype"] not in ELEMENT_BYTES:
        raise BadPlanError(f"{what} has elements of type {shown(given['dtype'])}")
    return BufferView(
        whole(given["buffer"], f"the buffer of {what}", limits.MAX_BUFFERS),
        whole(given["offset"], f"the offset of {what}", limits.MAX_MEMORY_BYTES),
        several(given["shape"], f"the shape of {what}", limits.MAX_AXES, _length),
        several(given["strides"], f"the strides of {what}", limits.MAX_AXES, _length),
        given["dtype"],
    )


def _length(value: object, what: str) -> int:
    return whole(value, what, _MAX_STRIDE)


def _output(value: object, what: str) -> BufferView | WrongOutput:
    if isinstance(value, dict) and "wrong" in value:
        return WrongOutput(name(fields(value, what, "wrong")["wrong"], what, 200))
    return _view(value, what)


def _reference(value: object, what: str) -> BufferReference:
    numbers = several(value, what, 3, _length)
    if len(numbers) != 3:
        raise BadPlanError(f"{what} has {len(numbers)} numbers, expected place, buffer and offset")
    return BufferReference(*numbers)


def _references(value: object, what: str) -> tuple[BufferReference, ...]:
    return several(value, f"the references of {what}", limits.MAX_REFERENCES, _reference)


def _three(value: object, what: str) -> tuple[int, int, int]:
    numbers = several(value, what, 3, lambda size, axis: whole(size, axis, limits.MAX_GRID, 1))
    if len(numbers) != 3:
        raise BadPlanError(f"{what} has {len(numbers)} axes, expected three")
    return numbers[0], numbers[1], numbers[2]


def _step_reader(constants: _Pieces) -> Callable[[object, str], PlanStep]:
    def upload(value: object, what: str) -> UploadStep:
        given = fields(value, what, "do buffer offset size references")
        size = whole(given["size"], f"the size of {what}", limits.MAX_CONSTANTS_BYTES)
        return UploadStep(
            whole(given["buffer"], f"the buffer of {what}", limits.MAX_BUFFERS),
            whole(given["offset"], f"the offset of {what}", limits.MAX_MEMORY_BYTES),
            constants.take(size),
            _references(given["references"], what),
        )

    def read_values(value: object, what: str) -> ReadStep:
        given = fields(value, what, "do source size")
        size = whole(given["size"], f"the size of {what}", limits.MAX_CONSTANTS_BYTES)
        return ReadStep(_view(given["source"], f"the source of {what}"), constants.take(size))

    readers: dict[str, Callable[[object, str], PlanStep]] = {
        "launch": _launch,
        "copying launch": lambda value, what: replace(_launch(value, what), copies=True),
        "fill": _fill,
        "copy": _copy,
        "upload": upload,
        "operator": _operator,
        "read": read_values,
    }

    def read(value: object, what: str) -> PlanStep:
        kind = value.get("do") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in readers:
            raise BadPlanError(f"{what} does {shown(kind)}, expected one of {list(readers)}")
        return readers[kind](value, what)

    return read


def _launch(value: object, what: str) -> LaunchStep:
    given = fields(value, what, "do kernel grid block shared arguments")
    return LaunchStep(
        whole(given["kernel"], f"the kernel of {what}", limits.MAX_KERNELS),
        _three(given["grid"], f"the grid of {what}"),
        _three(given["block"], f"the block of {what}"),
        whole(given["shared"], f"the shared memory of {what}", limits.MAX_SHARED_BYTES),
        several(given["arguments"], f"the arguments of {what}", limits.MAX_ARGUMENTS, _argument),
    )


def _argument(value: object, what: str) -> PlanArgument:
    given = fields(value, what, "data references")
    data = binary(given["data"], what, limits.MAX_ARGUMENTS_BYTES)
    return PlanArgument(data, _references(given["references"], what))


def _fill(value: object, what: str) -> FillStep:
    given = fields(value, what, "do target pattern")
    target = _view(given["target"], f"the target of {what}")
    return FillStep(target, binary(given["pattern"], f"the pattern of {what}", 16))


def _copy(value: object, what: str) -> CopyStep:
    given = fields(value, what, "do source target")
    return CopyStep(
        _view(given["source"], f"the source of {what}"),
        _view(given["target"], f"the target of {what}"),
    )


def _operator(value: object, what: str) -> TorchOperatorStep:
    given = fields(value, what, "do name overload arguments tensors results told")
    results = given["results"]
    if type(given["told"]) is not bool:
        raise BadPlanError(f"{what} does not say whether it was told")
    return TorchOperatorStep(
        name(given["name"], f"the name of {what}", limits.MAX_NAME_CHARACTERS),
        name(given["overload"], f"the overload of {what}", limits.MAX_NAME_CHARACTERS),
        name(given["arguments"], f"the arguments of {what}", limits.MAX_OPERATOR_CHARACTERS),
        several(given["tensors"], f"the tensors of {what}", limits.MAX_ARGUMENTS, _view),
        None
        if results is None
        else several(results, f"the results of {what}", limits.MAX_ARGUMENTS, _view),
        given["told"],
    )
