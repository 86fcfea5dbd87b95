"""Describes a fault of a kernel in one line that a person can act on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_gym.sim.layouts import FaultKind

KINDS = {int(kind): kind.name.lower() for kind in FaultKind if kind is not FaultKind.NONE}
"""Names of the kinds of faults, by number."""
AUDIT_KINDS = frozenset(name for kind, name in KINDS.items() if kind >= FaultKind.LDS_RACE)
"""Kinds that only an audited launch finds. Without an audit the launch runs to its end."""
COMPILER_KINDS = frozenset({"unwaited_write", "unwaited_read"})
"""Kinds of `AUDIT_KINDS` that are known from Triton's compiler: it leaves out a wait for LDS before
a barrier. A Triton program names neither. Other kinds are not known from it, so that a candidate
which removes waits or barriers from machine code is at fault."""
LDS_ADDRESSES = 1 << 20  # addresses below are byte offsets in LDS


@dataclass(frozen=True)
class Fault:
    """The reason why a kernel was stopped.

    Attributes:
        kind: One of ``KINDS``.
        message: One line: what happened, source line, workgroup, nearest allocation.
        kernel: Name of the kernel.
        instruction: Assembler text of the instruction.
        source: ``file:line`` of the source, or empty if unknown.
        workgroup: Its coordinates.
        wave: Number of the wave in the workgroup.
        lane: Lane in the wave.
        address: Address of the access (LDS: byte offset), 0 if there is none.
        size: Bytes of the access, 0 if there is none.
        other_source: ``file:line`` of the other access of a race, or of the access not waited for.
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
    other_source: str = ""


def nearest_allocation(address: int, allocations: Sequence[tuple[int, int, str]]) -> str:
    """Describe an address by the closest allocation.

    Args:
        address: The address.
        allocations: ``(start, size, label)``, sorted by start.

    Returns:
        A text such as ``16 bytes past the end of x (4096 bytes)``.
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
    """The first part of a fault's message: what happened, and to which memory."""
    if kind in ("out_of_bounds_read", "out_of_bounds_write"):
        verb = "read" if kind.endswith("read") else "write"
        if address >> 32 == 0x20000:
            return f"{verb} of {size} bytes at {address & 0xFFFFFFFF} in scratch, out of bounds"
        where = nearest_allocation(address, allocations)
        return f"{verb} of {size} bytes at {address:#x} is out of bounds: {where}"
    in_lds = address < LDS_ADDRESSES
    where = f"byte {address} of LDS" if in_lds else nearest_allocation(address, allocations)
    return {
        "lds_out_of_bounds": (
            f"LDS access of {size} bytes at {address} is out of bounds: {lds_bytes} bytes"
        ),
        "misaligned": (
            f"access of {size} bytes at {where} is not aligned: the instruction needs a multiple "
            f"of {16 if size == 16 else 8 if size >= 8 else 4}"
        ),
        "time_limit": "the time limit is exceeded: an endless loop, or too much work",
        "instruction_limit": (
            "too many instructions in one launch: an endless loop, or too much work"
        ),
        "deadlock": (
            "deadlock: every wave that is resident waits and nothing can change any more "
            f"({size} wait at a barrier, {address} workgroups have not started)"
        ),
        "trap": "the kernel trapped",
        "jump": (
            f"jump to the computed address {address:#x}, where neither a function nor a block of "
            "this program begins: jump to labels and functions only"
        ),
        "lds_race": f"race: {where} is used by two waves without a barrier between",
        "global_race": (
            f"race: {where} is used by two waves without an atomic or a barrier that orders them"
        ),
        "lost_write": (
            f"lost write: lanes of one wave store different values to {where} in one instruction, "
            "and only one survives: reduce first, or use an atomic"
        ),
        "missing_waitcnt": "a register is used before its load has arrived: s_waitcnt is missing",
        "unwaited_write": (
            f"{where} is used after a barrier, but the write of another wave need not have landed: "
            "s_waitcnt is missing between that write and the barrier, which does not wait itself"
        ),
        "unwaited_read": (
            f"{where} is overwritten after a barrier, but the read of another wave may still be "
            "under way: s_waitcnt is missing between that read and the barrier, which does not "
            "wait itself"
        ),
        "uninitialised_lds": (
            f"uninitialised LDS: {where} is read before anything was written there, and the result "
            "depends on it"
        ),
        "uninitialised_register": (
            "uninitialised register: it is read before anything was written to it, and the result "
            "depends on it"
        ),
    }.get(kind, kind.replace("_", " "))


def describe_other(kind: str, instruction: str, source: str, wave: int, workgroup: int) -> str:
    """The other side of a race, or the load that was not waited for."""
    place = f"{source}: {instruction}" if source else instruction
    if kind == "missing_waitcnt":
        return f"the load is at {place}"
    if kind == "unwaited_write":
        return f"the write is by wave {wave} at {place}"
    if kind == "unwaited_read":
        return f"the read is by wave {wave} at {place}"
    if kind == "deadlock":
        return f"others wait at {place}"
    return f"the other access is by wave {wave} of workgroup {workgroup} at {place}"
