"""What a worker says of timed calls, read by the judge: nothing of it is believed unchecked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernel_gym.devices.gpu import runtime as gpu_runtime
from kernel_gym.devices.gpu.arena import Arena, Piece
from kernel_gym.devices.gpu.runtime import HANDLE_BYTES

LEAST_STAMP = 1e-4
"""Milliseconds: shorter than any launch."""
CLOCKS_DIFFER = 1.01
"""The GPU's clock may run so much faster than the host's."""


@dataclass(frozen=True)
class Places:
    """Where the outputs of timed calls are, in the worker's words."""

    calls: list[Any] = field(default_factory=list)
    """For each call and output [allocation, offset in bytes, bytes]."""
    handles: list[Any] = field(default_factory=list)
    """Of the allocations, hexadecimal."""


@dataclass(frozen=True)
class Block:
    """Timed calls, seconds: each by the worker's stamps, all by the judge's clock."""

    stamps: tuple[float, ...]
    wall: float
    host: float
    """What the worker's host code took for one call, by its own account."""


def read_block(answer: Mapping[str, Any], count: int, wall: float, limit: float) -> Block | None:
    """The stamps of a block; None when they cannot be those of `count` timed calls.

    Args:
        answer: the worker's.
        count: how many stamps were asked for.
        wall: seconds that passed by the judge's clock.
        limit: most seconds that the host's part of a call can be.
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
    return Block(tuple(ms * 1e-3 for ms in stamps), wall, host)


def read_places(answer: Mapping[str, Any]) -> Places:
    """Where the worker says that outputs are; each place is checked when it is read."""
    calls, handles = answer.get("places"), answer.get("handles")
    if not isinstance(calls, list) or not isinstance(handles, list):
        return Places()
    return Places(calls, handles)


def copy_outputs(arena: Arena, places: Places, call: int, targets: Sequence[Piece]) -> bool:
    """Copies a call's outputs from where a worker says that they are; whether they were there.

    The worker is stopped meanwhile and has no work on the GPU: what is there was computed before
    the judge's clock stopped.

    Args:
        arena: where they are copied to.
        places: what the worker said.
        call: which of the calls.
        targets: a piece of the arena for each output.
    """
    return all(
        _copy_output(arena, places, call, number, target) for number, target in enumerate(targets)
    )


def _copy_output(arena: Arena, places: Places, call: int, number: int, target: Piece) -> bool:
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


def _copy_inside(arena: Arena, offset: int, target: Piece) -> bool:
    if offset + target.size > arena.size:
        return False
    if offset != target.start:
        source = Piece(offset, target.size, "an output in the arena")
        arena.view(target).copy_(arena.view(source).clone())
    return True
