"""Places the buffers of a plan in one piece of memory, with guards between them."""

from __future__ import annotations

import random
from dataclasses import dataclass

GUARD_BYTES = 4096
"""Bytes before and behind each buffer. They are poisoned as all memory of a call, and stay so."""
_ALIGNMENT = 256
_MAX_SHIFT = 64
"""Buffers begin at one of so many places, which is drawn for each piece of work."""


@dataclass(frozen=True)
class BufferLayout:
    """Offsets of buffers, and of the guards behind them."""

    offsets: tuple[int, ...]
    guards: tuple[tuple[int, int], ...]
    """Offset and bytes of each guard: one before the first buffer, then one behind each."""
    size: int


def room_for(sizes: list[int]) -> int:
    """Returns the bytes that any layout of such buffers needs."""
    padded = sum(-(-size // _ALIGNMENT) * _ALIGNMENT + GUARD_BYTES for size in sizes)
    return _MAX_SHIFT * _ALIGNMENT + GUARD_BYTES + padded


def draw_layout(sizes: list[int], rng: random.Random) -> BufferLayout:
    """Places buffers one behind the other, from a place that is drawn."""
    place = rng.randrange(_MAX_SHIFT) * _ALIGNMENT
    guards, offsets = [(place, GUARD_BYTES)], []
    place += GUARD_BYTES
    for size in sizes:
        offsets.append(place)
        end = place + size
        place = -(-end // _ALIGNMENT) * _ALIGNMENT + GUARD_BYTES
        guards.append((end, place - end))
    return BufferLayout(tuple(offsets), tuple(guards), room_for(sizes))
