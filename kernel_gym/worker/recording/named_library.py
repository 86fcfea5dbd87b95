"""A shared library that has a name and nothing else.

A library is loaded only if each library that it names is there. The functions of HIP are in this
process already, but under the name of our own library, and a loaded library gets no second name.
"""

from __future__ import annotations

import struct

_LOADED, _DYNAMIC = 1, 2
_NAME, _STRINGS, _SYMBOLS, _STRINGS_SIZE, _SYMBOL_SIZE = 14, 5, 6, 10, 11
_HEADER, _SEGMENT, _SYMBOL = 64, 56, 24
"""Bytes of the header of a file, the header of a segment, and a symbol."""


def named_library(name: str) -> bytes:
    """Returns a library without functions, for x86-64 and Linux.

    Args:
        name: The name by which other libraries ask for it.
    """
    strings = b"\0" + name.encode() + b"\0"
    tags = _HEADER + 2 * _SEGMENT
    symbols = tags + 6 * 16
    end = symbols + _SYMBOL
    dynamic = [
        *((_NAME, 1), (_STRINGS, end), (_STRINGS_SIZE, len(strings))),
        *((_SYMBOLS, symbols), (_SYMBOL_SIZE, _SYMBOL), (0, 0)),
    ]
    size = end + len(strings)
    kind = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)  # 64 bits, little-endian
    header = kind + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, _HEADER, 0, 0, 64, _SEGMENT, 2, 0, 0, 0
    )
    return b"".join(
        [
            header,
            _segment(_LOADED, 0, size),
            _segment(_DYNAMIC, tags, 6 * 16),
            *(struct.pack("<QQ", *each) for each in dynamic),
            bytes(_SYMBOL),
            strings,
        ]
    )


def _segment(kind: int, place: int, size: int) -> bytes:
    """Returns the header of a segment that can be read and written."""
    return struct.pack("<IIQQQQQQ", kind, 6, place, place, place, size, size, 0x1000)
