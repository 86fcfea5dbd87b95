"""What went wrong in a kernel, in one line a person can act on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

# Numbers of enum FaultKind in csrc/wave.h.
KINDS = {
    1: "out_of_bounds_read",
    2: "out_of_bounds_write",
    3: "misaligned",
    4: "lds_out_of_bounds",
    5: "time_limit",
    6: "instruction_limit",
    7: "deadlock",
    8: "trap",
    9: "unsupported",
}


@dataclass(frozen=True)
class Fault:
    """A kernel was stopped.

    Attributes:
        kind: One of ``KINDS``.
        message: One line: what, where in the source, which workgroup, nearest allocation.
        kernel: Name of the kernel.
        instruction: Assembler text of the instruction.
        source: ``file:line`` of the source, or empty if unknown.
        workgroup: Its coordinates.
        wave: Number of the wave in the workgroup.
        lane: Lane in the wave.
        address: Address of the access (LDS: byte offset), 0 if there is none.
        size: Bytes of the access, 0 if there is none.
    """

    kind: str
    message: str
    kernel: str
    instruction: str
    source: str
    workgroup: tuple[int, int, int]
    wave: int
    lane: int
    address: int
    size: int


def nearest_allocation(address: int, allocations: Sequence[tuple[int, int, str]]) -> str:
    """Describe an address by the closest allocation.

    Args:
        address: The address.
        allocations: ``(start, size, label)``, sorted by start.

    Returns:
        Words such as ``16 bytes past the end of x (4096 bytes)``.
    """
    if not allocations:
        return "no memory is allocated"
    place = bisect_right([start for start, _, _ in allocations], address)
    candidates = []
    if place > 0:
        start, size, label = allocations[place - 1]
        distance = address - (start + size)
        if distance < 0:
            words = f"{address - start} bytes into {label} ({size} bytes)"
        else:
            words = f"{distance} bytes past the end of {label} ({size} bytes)"
        candidates.append((max(0, distance), words))
    if place < len(allocations):
        start, size, label = allocations[place]
        distance = start - address
        candidates.append((distance, f"{distance} bytes before {label} ({size} bytes)"))
    return min(candidates)[1]


def describe(
    kind: str, address: int, size: int, lds_bytes: int, allocations: Sequence[tuple[int, int, str]]
) -> str:
    """The first part of a fault's message."""
    if kind in ("out_of_bounds_read", "out_of_bounds_write"):
        verb = "read" if kind.endswith("read") else "write"
        if address >> 32 == 0x20000:
            return f"{verb} of {size} bytes at {address & 0xFFFFFFFF} in scratch, out of bounds"
        where = nearest_allocation(address, allocations)
        return f"{verb} of {size} bytes at {address:#x} is out of bounds: {where}"
    if kind == "lds_out_of_bounds":
        return f"LDS access of {size} bytes at {address} is out of bounds: {lds_bytes} bytes"
    if kind == "misaligned":
        return f"atomic access of {size} bytes at {address:#x} is not aligned"
    return {
        "time_limit": "the time limit is exceeded: an endless loop, or too much work",
        "instruction_limit": "the instruction limit is exceeded",
        "trap": "the kernel trapped",
    }.get(kind, kind.replace("_", " "))
