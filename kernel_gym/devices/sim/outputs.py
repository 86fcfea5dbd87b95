"""Reads the outputs of a call from the simulated device, and the profile of a launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import torch

from kernel_gym.devices.answers import PlacedOutput, StatedOutput, Wrong, misplaced
from kernel_gym.devices.base import OutputTensor

Locate = Callable[[int, int], int | None]
"""Maps (address, size) to the start of the live allocation that contains the range, or to None."""
View = Callable[[int, int], torch.Tensor]
"""Maps (address, size) to the bytes there, uint8 [size]."""


def read_outputs(
    described: Sequence[PlacedOutput | Wrong],
    stated: Sequence[StatedOutput],
    inputs: Mapping[int, str],
    locate: Locate,
    view: View,
    first: Mapping[str, int] = MappingProxyType({}),
) -> tuple[OutputTensor, ...]:
    """Copies the outputs of a call from the device, with the sizes that the task states.

    Args:
        described: The tensors that the worker described, or what is wrong with them.
        stated: The outputs that the task states.
        inputs: The name of each input by its address; empty if a candidate may return the input.
        locate: Finds the allocation of a range.
        view: Returns bytes of the device's memory.
        first: The address of the first element of each input that an output is written to.

    Returns:
        One output for each stated one. If the worker returned another number of values, one
        problem for each wrong value.
    """
    if len(described) != len(stated):
        return tuple(
            OutputTensor(None, output.problem) for output in described if isinstance(output, Wrong)
        )
    return tuple(
        OutputTensor(None, output.problem)
        if isinstance(output, Wrong)
        else OutputTensor(None, wrong)
        if (wrong := misplaced(expected, output.address, first))
        else _read(output.address, expected, inputs, locate, view)
        for output, expected in zip(described, stated, strict=True)
    )


def _read(
    address: int, stated: StatedOutput, inputs: Mapping[int, str], locate: Locate, view: View
) -> OutputTensor:
    if not stated.nbytes:
        return OutputTensor(torch.empty(stated.shape, dtype=stated.dtype))
    start = locate(address, stated.nbytes)
    if start is None:
        returned = "a tensor over memory that is not allocated"
        return OutputTensor(None, f"found {returned}, expected a device tensor")
    if inputs.get(start):
        returned = f"a view of the input {inputs[start]!r}"
        return OutputTensor(None, f"found {returned}, expected a tensor of its own")
    copied = view(address, stated.nbytes).clone()
    return OutputTensor(copied.view(stated.dtype).view(stated.shape))
