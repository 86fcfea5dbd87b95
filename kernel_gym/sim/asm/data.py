"""Initialised data objects of an assembler text: constant tables and global variables."""

from __future__ import annotations

import ctypes as ct
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kernel_gym.sim.asm.errors import AsmError, UnsupportedInstruction

_INTEGERS = {
    ".byte": 1,
    ".short": 2,
    ".2byte": 2,
    ".value": 2,
    ".long": 4,
    ".4byte": 4,
    ".int": 4,
    ".quad": 8,
    ".8byte": 8,
}
_ALIGNMENT = 256
MAX_DATA = 128 << 20
"""Maximum bytes of one object. One line of text can ask for any number of zeros."""
_ESCAPES = {"n": 10, "t": 9, "r": 13, "b": 8, "f": 12, '"': 34, "\\": 92}
_OCTAL = re.compile(r"[0-7]{1,3}")
_SYMBOL = re.compile(r"^([A-Za-z_.$][\w.$]*)\s*(?:\+\s*(\d+))?$")


@dataclass
class DataObject:
    """Bytes under one label.

    Attributes:
        name: The label.
        content: Initial bytes.
        relocations: ``(offset, symbol, addend)`` of 8-byte addresses to fill in.
        size: Bytes that the text says it has; 0 if it does not say. The content may be padded.
        origin: Its address in a linked code object, whose distances the code relies on; else None.
    """

    name: str
    content: bytearray = field(default_factory=bytearray)
    relocations: list[tuple[int, str, int]] = field(default_factory=list)
    size: int = 0
    origin: int | None = None


def _string_bytes(text: str) -> bytes:
    """The bytes of a quoted assembler string."""
    body, out, i = text.strip()[1:-1], bytearray(), 0
    while i < len(body):
        if body[i] != "\\":
            out += body[i].encode()
            i += 1
            continue
        octal = _OCTAL.match(body, i + 1)
        if octal:
            out.append(int(octal.group(), 8) & 0xFF)
            i += 1 + len(octal.group())
        else:
            out.append(_ESCAPES.get(body[i + 1], ord(body[i + 1])))
            i += 2
    return bytes(out)


class DataReader:
    """Collects data directives into objects."""

    def __init__(self, objects: dict[str, DataObject]) -> None:
        """Write the objects into the given dictionary."""
        self._objects = objects
        self._current: DataObject | None = None
        self._wanted = False
        self._origin: int | None = None

    def section(self, argument: str) -> None:
        """Enter a section; only allocated data counts (not debug information or notes)."""
        name = argument.split(",")[0].strip()
        self._wanted = name.startswith((".rodata", ".data", ".bss", ".sdata"))
        self._wanted = self._wanted and not name.startswith(".rodata.amdhsa")
        self._current = None

    def label(self, name: str) -> None:
        """Begin an object."""
        if self._wanted:
            self._current = self._objects.setdefault(name, DataObject(name))
            self._current.origin = self._origin
            self._origin = None

    def common(self, argument: str) -> None:
        """Handle ``.comm name, size, alignment``: zeroed data."""
        name, size = (part.strip() for part in argument.split(",")[:2])
        self._objects[name] = DataObject(name, bytearray(_bounded(int(size, 0), argument)))

    def directive(self, name: str, argument: str, line: int, text: str) -> None:
        """Append the bytes of a data directive."""
        if name == ".size":
            self._size(argument)
        if name == ".org":
            self._origin = _bounded(int(argument, 0), argument, most=MAX_DATA)
            self._current = None
        if self._current is None:
            return
        content = self._current.content
        if name in _INTEGERS:
            for item in argument.split(","):
                self._integer(item.strip(), _INTEGERS[name], line, text)
        elif name in (".zero", ".space", ".skip"):
            size = int(argument.split(",")[0], 0)
            content += bytes(_bounded(len(content) + size, argument) - len(content))
        elif name in (".ascii", ".asciz", ".string"):
            content += _string_bytes(argument) + (b"" if name == ".ascii" else b"\0")
        elif name == ".p2align":
            alignment = 1 << _bounded(int(argument.split(",")[0], 0), argument, most=16)
            content += bytes(-len(content) % alignment)
        elif name == ".fill":
            count, size, value = [int(part, 0) for part in (argument + ",1,0").split(",")[:3]]
            _bounded(max(size, len(content) + size * count), argument)
            content += (value & ((1 << 8 * size) - 1)).to_bytes(size, "little") * count

    def _size(self, argument: str) -> None:
        """Handle ``.size name, bytes``; other expressions describe functions."""
        name, _, size = argument.partition(",")
        if name.strip() in self._objects and size.strip().isdecimal():
            self._objects[name.strip()].size = int(size)

    def _integer(self, value: str, size: int, line: int, text: str) -> None:
        assert self._current is not None
        content = self._current.content
        try:
            number = int(value, 0)
        except ValueError:
            symbol = _SYMBOL.match(value)
            if not symbol or size != 8:
                raise UnsupportedInstruction(
                    f"data expression {value!r} is not supported", line, text
                ) from None
            addend = int(symbol.group(2) or 0)
            self._current.relocations.append((len(content), symbol.group(1), addend))
            number = 0
        content += struct.pack("<Q", number & 0xFFFFFFFFFFFFFFFF)[:size]


def _bounded(number: int, text: str, most: int = MAX_DATA) -> int:
    """Returns a number from an assembler text if it is in range.

    Raises:
        UnsupportedInstruction: If it is negative or too large.
    """
    if not 0 <= number <= most:
        raise UnsupportedInstruction(f"a data object of {text[:40]}, expected at most {most}")
    return number


class Storage:
    """The variables and tables of a module in memory, shared by its kernels.

    Attributes:
        addresses: Address of each object, by name.
        sizes: Bytes of each object.
        start: Address of the first object.
        size: Bytes of all objects with their padding.
    """

    def __init__(
        self, data: Mapping[str, DataObject], place: Callable[[int], int] | None = None
    ) -> None:
        """Lay out the objects with their initial contents. A decoder fills in the pointers.

        Args:
            data: The objects by name.
            place: Allocates the bytes for all of them; default: memory of this process.
        """
        self.sizes = {name: item.size or len(item.content) for name, item in data.items()}
        offsets, self.size = _offsets(data)
        if place is not None and self.size:
            self._buffer = None
            self.start = place(self.size)
        else:
            self._buffer = ct.create_string_buffer(self.size + _ALIGNMENT)
            self.start = -(-ct.addressof(self._buffer) // _ALIGNMENT) * _ALIGNMENT
        self.addresses = {name: self.start + offset for name, offset in offsets.items()}
        for name, item in data.items():
            ct.memmove(self.addresses[name], bytes(item.content), len(item.content))


def _offsets(data: Mapping[str, DataObject]) -> tuple[dict[str, int], int]:
    """The offset of each object and the bytes of all: linked ones keep their distances."""
    origins = [item.origin for item in data.values() if item.origin is not None]
    base = min(origins, default=0) // _ALIGNMENT * _ALIGNMENT
    offsets: dict[str, int] = {}
    end = 0
    for name, item in data.items():
        if item.origin is not None:
            offsets[name] = item.origin - base
            end = max(end, offsets[name] + len(item.content))
    for name, item in data.items():
        if item.origin is None:
            offsets[name] = -(-end // _ALIGNMENT) * _ALIGNMENT
            end = offsets[name] + max(1, len(item.content))
    return offsets, -(-end // _ALIGNMENT) * _ALIGNMENT


def check_room(data: Mapping[str, DataObject], others: Iterable[Storage], limit: int) -> None:
    """Checks that the variables of a module fit the device beside those of other modules.

    Raises:
        AsmError: If they do not fit.
    """
    _, wanted = _offsets(data)
    held = sum(storage.size for storage in others)
    if held + wanted > limit:
        raise AsmError(f"{wanted} bytes of device variables beside {held}, expected {limit} in all")
