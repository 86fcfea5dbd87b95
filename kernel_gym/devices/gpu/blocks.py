"""Reads a worker's answers to timed calls. Every field is checked before it is used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernel_gym.devices.base import TimedBlock
from kernel_gym.devices.gpu import runtime as gpu_runtime
from kernel_gym.devices.gpu.arena import GpuArena
from kernel_gym.devices.gpu.runtime import HANDLE_BYTES
from kernel_gym.devices.placement import ArenaPiece

LEAST_STAMP = 1e-4
"""Milliseconds. No launch is as short."""
CLOCKS_DIFFER = 1.01
"""The GPU's clock may be faster than the host's by this factor."""


@dataclass(frozen=True)
class Places:
    """Where the worker says that the outputs of timed calls are. Not trusted."""

    calls: list[Any] = field(default_factory=list)
    """For each call, for each output: [allocation, offset in bytes, bytes]."""
    handles: list[Any] = field(default_factory=list)
    """The handles of the allocations, hexadecimal."""


def read_block(
    answer: Mapping[str, Any], count: int, wall: float, limit: float
) -> TimedBlock | None:
    """Reads the times of a block. Returns None if they cannot be those of `count` timed calls.

    Args:
        answer: The worker's answer.
        count: The number of stamps that were asked for.
        wall: Seconds of the block by the judge's clock.
        limit: The most seconds that the host code of one call can take.
    """
    stamps, host = answer.get("ms"), answer.get("host")
    if not isinstance(stamps, list) or len(stamps) != count:
        return None
    if not all(type(s) is float and math.isfinite(s) and s >= LEAST_STAMP for s in stamps):
        return None
    if sum(stamps) * 1e-3 > CLOCKS_DIFFER * wall:
        return None
    if type(host) is not float or not 0 <= host < limit:
        return None
    return TimedBlock(tuple(ms * 1e-3 for ms in stamps), wall, host)


def read_places(answer: Mapping[str, Any]) -> Places:
    """Reads where the outputs are. Each place is checked when its bytes are read."""
    calls, handles = answer.get("places"), answer.get("handles")
    if not isinstance(calls, list) or not isinstance(handles, list):
        return Places()
    return Places(calls, handles)


def copy_outputs(arena: GpuArena, places: Places, call: int, targets: Sequence[ArenaPiece]) -> bool:
    """Copies a call's outputs from where the worker says they are.

    The worker is stopped meanwhile and has no work on the GPU, so the outputs were computed before
    the judge read its clock.

    Args:
        arena: The memory with the targets.
        places: What the worker said.
        call: The index of the call.
        targets: A piece of the arena for each output.

    Returns:
        Whether all outputs were there.
    """
    return all(
        _copy_output(arena, places, call, number, target) for number, target in enumerate(targets)
    )


def _copy_output(
    arena: GpuArena, places: Places, call: int, number: int, target: ArenaPiece
) -> bool:
    try:
        allocation, offset, size = places.calls[call][number]
        numbers = all(type(value) is int for value in (allocation, offset, size))
        if not numbers or size != target.size or offset < 0:
            return False
        if allocation == -1:
            return _copy_inside(arena, offset, target)
        handle = bytes.fromhex(places.handles[allocation])
    except (IndexError, KeyError, TypeError, ValueError):
        return False
    if allocation < 0 or len(handle) != HANDLE_BYTES:
        return False
    try:
        gpu_runtime.read_exported(handle, offset, arena.view(target))
    except gpu_runtime.GpuRuntimeError:
        return False
    return True


def _copy_inside(arena: GpuArena, offset: int, target: ArenaPiece) -> bool:
    if offset + target.size > arena.size:
        return False
    if offset != target.start:
        source = ArenaPiece(offset, target.size, "an output in the arena")
        arena.view(target).copy_(arena.view(source).clone())
    return True
