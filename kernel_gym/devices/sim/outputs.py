"""What a call left on the simulated device: the outputs, and the profile of its longest launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from kernel_gym.devices.answers import Said, Stated, Wrong
from kernel_gym.devices.base import OutputTensor
from kernel_gym.sim.timing.profile import without_folders

Locate = Callable[[int, int], int | None]
"""The start of the live allocation that holds `(address, size)` whole; None when none does."""
View = Callable[[int, int], torch.Tensor]
"""The bytes at `(address, size)`, uint8 (size,)."""


def read_outputs(
    said: Sequence[Said | Wrong],
    stated: Sequence[Stated],
    inputs: Mapping[int, str],
    locate: Locate,
    view: View,
) -> tuple[OutputTensor, ...]:
    """Copies what a call returned from the device, as many bytes as the task expects.

    Args:
        said: What the worker returned, compared with what the task expects.
        stated: What the task expects.
        inputs: The name of each input by its address; empty where a candidate may return it.
        locate: Asks the device.
        view: The judge's view of the device's memory.
    """
    if len(said) != len(stated):
        return tuple(OutputTensor(None, one.problem) for one in said if isinstance(one, Wrong))
    return tuple(
        OutputTensor(None, one.problem)
        if isinstance(one, Wrong)
        else _read(one.address, expected, inputs, locate, view)
        for one, expected in zip(said, stated, strict=True)
    )


def _read(
    address: int, stated: Stated, inputs: Mapping[int, str], locate: Locate, view: View
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


def kernel_profile(launch: Mapping[str, Any]) -> dict[str, Any]:
    """What a launch's profile says of its kernel, in the names of `KernelFacts`."""
    profile = launch.get("profile") or {}
    occupancy = profile.get("occupancy") or {}
    return {
        "kernel": launch.get("name"),
        "bound_by": profile.get("bound_by"),
        "waves_per_simd": occupancy.get("waves_per_simd"),
        "occupancy_limiter": occupancy.get("limiter"),
        "profile": without_folders(profile),
    }
