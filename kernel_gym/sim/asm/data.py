"""Initialised data objects of a code object: constant tables and global variables."""

from __future__ import annotations

import ctypes as ct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kernel_gym.sim.asm.elf import OBJECT, CodeObject, Section
from kernel_gym.sim.asm.errors import AsmError

_ALIGNMENT = 256
MAX_DATA_BYTES = 128 << 20
"""Limit of the objects of a module. A file needs no bytes for zeros."""


@dataclass
class DataObject:
    """Bytes under one symbol.

    Attributes:
        origin: Its address in the code object.
        content: Initial bytes.
        relocations: ``(offset, symbol, addend)`` of 8-byte addresses to fill in.
        size: Bytes that its symbol says it has; 0 if none does. The content may be padded.
    """

    origin: int
    content: bytes
    relocations: list[tuple[int, str, int]] = field(default_factory=list)
    size: int = 0


class DataReader:
    """The variables and tables of a code object, cut at their symbols.

    They keep their distances from each other: code may use the end of one, which is the start of
    the next.

    Raises:
        AsmError: They are too large.
    """

    def __init__(self, code: CodeObject) -> None:
        self._code = code
        self._variables = {s.address: s for s in code.symbols.values() if s.kind == OBJECT}
        held = sum(section.size for section in code.data_sections)
        if held > MAX_DATA_BYTES:
            raise AsmError(f"{held} bytes of data objects, expected at most {MAX_DATA_BYTES}")
        self._pieces = sorted(
            (piece for section in code.data_sections for piece in self._cut(section)),
            key=lambda piece: piece[0],
        )
        self._starts = [start for start, *_ in self._pieces]

    def _cut(self, section: Section) -> Iterator[tuple[int, int, str, Section]]:
        """Start, stop and name of each object of a section. Descriptors are none."""
        end = section.address + section.size
        inside = [a for a in sorted(self._variables) if section.address <= a < end]
        bounds = sorted({section.address, *inside})
        for start, stop in zip(bounds, [*bounds[1:], end], strict=True):
            symbol = self._variables.get(start)
            if symbol is None or symbol.name.endswith(".kd"):
                if symbol is not None:  # a descriptor; what follows it may be data
                    start += symbol.size
                name = f"data_at_{start:x}"
            else:
                name = symbol.name
            if start < stop:
                yield start, stop, name, section

    def name_at(self, address: int) -> tuple[str, int] | None:
        """The object that holds an address, and the distance from its start."""
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address > self._pieces[index][1]:
            return None
        return self._pieces[index][2], address - self._starts[index]

    def objects(self) -> dict[str, DataObject]:
        """Returns all objects by name.

        Raises:
            AsmError: A pointer is to no object or function.
        """
        objects = {}
        for start, stop, name, section in self._pieces:
            content = section.content[start - section.address : stop - section.address]
            symbol = self._variables.get(start)
            objects[name] = DataObject(
                start,
                content + bytes(stop - start - len(content)),
                [
                    (place - start, *self._pointee(target))
                    for place, target in self._code.pointers.items()
                    if start <= place <= stop - 8
                ],
                symbol.size if symbol is not None and symbol.name == name else 0,
            )
        return objects

    def _pointee(self, target: int) -> tuple[str, int]:
        if target in self._code.functions:
            return self._code.functions[target], 0
        place = self.name_at(target)
        if place is None:
            raise AsmError(f"a pointer to {target:#x}, where the code object has nothing")
        return place


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
            ct.memmove(self.addresses[name], item.content, len(item.content))


def _offsets(data: Mapping[str, DataObject]) -> tuple[dict[str, int], int]:
    """The offset of each object and the bytes of all: they keep their distances."""
    base = min((item.origin for item in data.values()), default=0) // _ALIGNMENT * _ALIGNMENT
    offsets = {name: item.origin - base for name, item in data.items()}
    end = max((offsets[name] + len(item.content) for name, item in data.items()), default=0)
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
