"""Recorded calls as typed values. They come from a process that ran a suite's code: hostile."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernel_gym.imports.readers.base import NoCallError, UnsupportedTask

MAX_CALLS = 64
MAX_ELEMENTS = 1 << 28
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
        *(torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz),
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.uint16, torch.uint32, torch.uint64),
    )
}
"""The dtypes of tensors in calls, by name."""

Size = Annotated[int, Field(ge=0, le=1 << 40)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ValueClass(_Frozen):
    """The class of a tensor's values, see `kernel_gym.imports.upstream.classes`."""

    kind: Literal["empty", "constant", "float", "bool", "kept", "range", "permutation", "integers"]
    value: float | int | str = 0
    mean: float = 0.0
    deviation: float = 0.0
    low: float | int = 0
    high: float | int = 0
    start: int = 0
    zeros: float = 0.0
    minus_infinite: float = 0.0
    nans: float = 0.0
    share: float = 0.0
    distinct: bool = False
    """Whether no integer is twice in a row."""
    whole: bool = False
    pattern: Literal["", "lower", "upper", "diagonal", "positive", "symmetric"] = ""
    data: str = Field("", max_length=1 << 16)
    bound: str = ""
    """A product of axes: the value of a constant, or one more than the largest value."""


class TensorForm(_Frozen):
    """A tensor argument of a recorded call."""

    shape: tuple[Size, ...] = Field(max_length=12, strict=False)
    strides: tuple[Size, ...] = Field(max_length=12, strict=False)
    dtype: str
    device: Literal["cpu", "cuda"] = "cuda"
    gradient: bool = False
    shares: int | None = None
    mutated: bool = False
    values: ValueClass
    padding: int = Field(0, ge=0, le=64)
    """Unused elements after each row; then the tensor starts one element into its memory."""

    @property
    def type(self) -> torch.dtype:
        """The dtype."""
        return DTYPES[self.dtype]


class RecordedCall(_Frozen):
    """One call of a function of a suite."""

    function: str = Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z]\w*)?$", max_length=200)
    grid: tuple[Size, ...] | None = Field(None, max_length=3, strict=False)
    args: list[object] = Field(max_length=200)
    kwargs: dict[str, object] = Field(max_length=200)
    tensors: list[TensorForm] = Field(max_length=64)
    backward: bool = False
    variants: list[dict[str, ValueClass]] = Field(default=[], max_length=16)
    """Other values of its integers that belong together, by the number of the tensor."""


class _Answer(BaseModel):
    calls: list[RecordedCall] = Field(max_length=MAX_CALLS)
    refused: list[str] = Field(default=[], max_length=MAX_CALLS)
    ended: str = Field("", max_length=400)
    status: int = 0


def parse_calls(answer: dict[str, object]) -> tuple[list[RecordedCall], str]:
    """Returns the calls of an answer of the recorder, and how the tests ended.

    Raises:
        UnsupportedTask: It is malformed, or there are no calls; the reason says why.
    """
    try:
        parsed = _Answer.model_validate(answer)
    except ValidationError as error:
        first = error.errors()[0]
        raise UnsupportedTask(f"broken: the record is malformed at {first['loc']}") from None
    calls = [call for call in parsed.calls if _possible(call)]
    if not calls and parsed.refused:
        raise NoCallError(f"not recorded: {parsed.refused[0]}")
    if not calls:
        raise NoCallError(f"no call: the tests call none of its functions ({parsed.ended})")
    return calls, parsed.ended


def _possible(call: RecordedCall) -> bool:
    for form in call.tensors:
        known = form.dtype in DTYPES and len(form.shape) == len(form.strides)
        size = 1
        for extent in form.shape:
            size *= extent
        if not known or size > MAX_ELEMENTS:
            return False
    return any(form.shape for form in call.tensors)
