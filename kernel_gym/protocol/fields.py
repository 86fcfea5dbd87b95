"""Parsers of the fields of requests: tensors, and all of `kernel_gym.protocol.values`.

The messages of errors are inert and short, whatever the value is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from kernel_gym.inert import shown
from kernel_gym.protocol.request import BadRequestError
from kernel_gym.protocol.values import (
    MAX_ARGUMENTS,
    MAX_NAME,
    anything,
    integer,
    label,
    listed,
    mapping,
    number,
    or_none,
    symbol,
    text,
    texts_by_name,
    three,
    truth,
    whole,
    wholes,
)

__all__ = [
    "ELEMENT_TYPES",
    "MAX_ARGUMENTS",
    "MAX_AXES",
    "MAX_NAME",
    "TensorOnDevice",
    "anything",
    "device_tensor",
    "integer",
    "label",
    "listed",
    "mapping",
    "number",
    "or_none",
    "symbol",
    "text",
    "texts_by_name",
    "three",
    "truth",
    "whole",
    "wholes",
]

MAX_AXES = 16
_TYPES = """
    bool uint8 int8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64
    complex64 complex128 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
""".split()
ELEMENT_TYPES = {name: getattr(torch, name) for name in _TYPES if hasattr(torch, name)}
"""Types of whole bytes. PyTorch ends the process for some operations on quantised ones."""


@dataclass(frozen=True)
class TensorOnDevice:
    """A tensor in the memory of a simulated GPU, which may or may not be allocated.

    Args:
        address: Device address of the first element.
        shape: Elements along each axis.
        strides: Elements between two neighbours along each axis.
        dtype: Type of the elements.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def extent(self) -> int:
        """Bytes from the start of the first element to the end of the last one."""
        if 0 in self.shape:
            return 0
        steps = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (1 + steps) * self.dtype.itemsize

    @property
    def repeats(self) -> bool:
        """Whether two elements share memory along an axis of stride zero."""
        return any(s == 0 and n > 1 for n, s in zip(self.shape, self.strides, strict=True))

    def to_json(self) -> dict[str, object]:
        """The tensor as a JSON object."""
        return {
            "address": self.address,
            "shape": list(self.shape),
            "strides": list(self.strides),
            "dtype": str(self.dtype).removeprefix("torch."),
        }


def device_tensor(value: object, what: str) -> TensorOnDevice:
    """A tensor on the simulated GPU.

    Raises:
        BadRequestError: The value does not describe a tensor that is possible.
    """
    if not isinstance(value, dict) or not isinstance(value.get("dtype"), str):
        raise BadRequestError(f"{what} is {shown(value)}, expected a tensor")
    dtype = ELEMENT_TYPES.get(value["dtype"])
    if dtype is None:
        raise BadRequestError(f"the device has no elements of type {shown(value['dtype'])}")
    shape = tuple(wholes(value.get("shape"), "a shape", MAX_AXES))
    strides = tuple(wholes(value.get("strides"), "a list of strides", MAX_AXES))
    if len(shape) != len(strides):
        raise BadRequestError(f"a tensor has {len(shape)} axes and {len(strides)} strides")
    return TensorOnDevice(whole(value.get("address"), "address"), shape, strides, dtype)
