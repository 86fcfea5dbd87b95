"""What a worker says of its outputs, read with distrust: overflowing sizes, overlapping strides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from kernel_gym.devices import sim_memory

MAX_OUTPUTS = 64
"""More than any task has; each costs the judge a question to the device."""
MAX_AXES = 16
_DTYPES = {str(d).removeprefix("torch."): d for d in vars(torch).values() if type(d) is torch.dtype}


@dataclass(frozen=True)
class Described:
    """A tensor on the device that is possible, whether or not it is there."""

    dtype: torch.dtype
    shape: list[int]
    strides: list[int]
    address: int

    @property
    def span(self) -> int:
        """Elements from the first to the last one."""
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))


def are_outputs(described: Any) -> bool:
    """Whether an answer is a short list of objects."""
    few = isinstance(described, list) and len(described) <= MAX_OUTPUTS
    return few and all(isinstance(output, dict) for output in described)


def parse_output(output: dict[str, Any]) -> Described | str:
    """The described tensor, or what is wrong with the description."""
    try:
        said = Described(
            _DTYPES[output["dtype"]],
            [int(n) for n in output["shape"]],
            [int(s) for s in output["strides"]],
            int(output["address"]),
        )
        if len(said.shape) != len(said.strides):
            return "something that is no tensor"
    except (KeyError, TypeError, ValueError, OverflowError):
        return "something that is no tensor"
    sizes = (*said.shape, *said.strides, 0)
    elements = math.prod(max(n, 1) for n in said.shape[:MAX_AXES])
    if len(said.shape) > MAX_AXES or max(*sizes, elements) > sim_memory.ARENA_SIZE:
        return "a tensor larger than the device"
    if min(sizes) < 0:
        return "a tensor with negative sizes or strides"
    if 0 not in said.shape and math.prod(said.shape) > said.span:
        return "a tensor whose elements share memory"
    return said
