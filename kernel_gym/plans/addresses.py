"""Addresses of tensors without data: a range of their own, so that every one is recognised.

The range is no memory of any process. Its upper 28 bits are no size, count or number that programs
use. So a word that lies in it is an address, wherever it stands: in an argument, in a struct that
is an argument, or in a table of pointers. A random word of 64 bits lies in it once in 2^28 times.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from kernel_gym.plans.limits import MAX_MEMORY_BYTES
from kernel_gym.plans.types import BufferReference

STAND_IN_BASE = 0x2A3C_5B80_0000_0000
STAND_IN_BYTES = MAX_MEMORY_BYTES
"""Size of the range. The regular expression below depends on both values."""
_WORD = struct.Struct("<Q")
_ANYWHERE = re.compile(rb"(?=(.{4}[\x80-\x8f]\x5b\x3c\x2a))", re.DOTALL)

Place = Callable[[int], tuple[int, int]]
"""Returns the buffer and the offset in it of an address; raises an error for an unknown one."""


def is_stand_in(address: int) -> bool:
    """Whether an address is one of a tensor without data."""
    return STAND_IN_BASE <= address < STAND_IN_BASE + STAND_IN_BYTES


def take_references(data: bytes, place: Place) -> tuple[bytes, tuple[BufferReference, ...]]:
    """Replaces all addresses in some bytes by zeros and references.

    Args:
        data: An argument or a constant. Addresses stand at multiples of 8, as in every struct that
            a compiler lays out.
        place: Finds the buffer of an address.

    Returns:
        The bytes with zeros, and the references in order.
    """
    references = []
    cleaned = bytearray(data)
    for at in stray_addresses(data):
        if at % 8:
            continue
        buffer, offset = place(_WORD.unpack_from(data, at)[0])
        references.append(BufferReference(at, buffer, offset))
        cleaned[at : at + 8] = bytes(8)
    return bytes(cleaned), tuple(references)


def put_references(
    data: bytes, references: tuple[BufferReference, ...], addresses: Callable[[int], int]
) -> bytes:
    """Writes true addresses into the bytes of an argument or a constant.

    Args:
        data: The bytes.
        references: Where addresses belong.
        addresses: Returns the address of a buffer by its number.
    """
    filled = bytearray(data)
    for reference in references:
        _WORD.pack_into(filled, reference.at, addresses(reference.buffer) + reference.offset)
    return bytes(filled)


def stray_addresses(data: bytes) -> list[int]:
    """Returns the places, aligned or not, at which the bytes hold an address of the range."""
    return [match.start() for match in _ANYWHERE.finditer(data)]
