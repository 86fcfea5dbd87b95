"""Reads the parts of an AMD GPU code object (ELF) that a kernel needs: symbols, code and data."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kernel_gym.sim.asm.errors import AsmError

ALLOCATED, WRITABLE, EXECUTABLE = 2, 1, 4
_NO_CONTENT, _SYMBOLS, _DYNAMIC_SYMBOLS, _ADDENDS, _NOTES = 8, 2, 11, 4, 7
_AMD_GPU = b"\x7fELF\x02\x01\x01\x40"
"""The first bytes of a code object: 64 bits, little-endian, for the HSA runtime."""
_MAX_SECTIONS = 4096
_MAX_COPIES = 4
"""Limit of the bytes of all sections, in sizes of the file. Sections may overlap."""
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_NOTE = struct.Struct("<III")
OBJECT, FUNCTION = 1, 2
_GLOBAL, _WEAK = 1, 2
_PLAIN_DATA = (1, 8, 14, 15, 16)  # contents, zeros, and the arrays of functions


@dataclass(frozen=True)
class Section:
    """A section that the loader puts into memory, or the table of symbols.

    Attributes:
        content: Its bytes; zeros without a copy in the file have only a size.
    """

    name: str
    kind: int
    flags: int
    address: int
    size: int
    content: bytes
    link: int


@dataclass(frozen=True)
class Symbol:
    """A named function or object."""

    name: str
    kind: int
    is_global: bool
    address: int
    size: int


class CodeObject:
    """The sections and symbols of a code object.

    Attributes:
        machine: Number of the GPU that it is for (EF_AMDGPU_MACH).
        sections: All of them, in the order of the file.
        symbols: Functions and objects by address; of several at one place the global one.
        pointers: Target by the address of an 8-byte pointer that the loader fills in.

    Raises:
        AsmError: The file is damaged.
    """

    def __init__(self, content: bytes) -> None:
        try:
            self._read(content)
        except (struct.error, IndexError, ValueError) as error:
            raise AsmError(f"the code object is damaged: {error}") from None

    def _read(self, content: bytes) -> None:
        if not content.startswith(_AMD_GPU):
            raise AsmError("the module is no code object for AMD GPUs")
        table, flags = struct.unpack_from("<QI", content, 40)
        self.machine = flags & 0xFF
        size, count, names = struct.unpack_from("<HHH", content, 58)
        if count > _MAX_SECTIONS:
            raise AsmError(f"the code object has {count} sections, expected {_MAX_SECTIONS}")
        heads = [_SECTION.unpack_from(content, table + size * i) for i in range(count)]
        held = sum(head[5] for head in heads if head[1] != _NO_CONTENT)
        if held > _MAX_COPIES * len(content):
            raise AsmError("the code object is damaged: its sections overlap")
        strings = content[heads[names][4] :] if heads else b""
        self.sections = [_section(head, content, strings) for head in heads]
        self.symbols: dict[int, Symbol] = {}
        for section in self.sections:
            if section.kind == _SYMBOLS:
                self._read_symbols(section)
            elif section.kind == _DYNAMIC_SYMBOLS:
                self._check_defined(section)
        self.pointers: dict[int, int] = {}
        for section in self.sections:
            if section.kind == _ADDENDS:
                self._read_pointers(section)

    def _read_symbols(self, table: Section) -> None:
        strings = self.sections[table.link].content
        for name, info, _, place, address, size in _SYMBOL.iter_unpack(table.content):
            kind, is_global = info & 15, info >> 4 == _GLOBAL
            if kind not in (OBJECT, FUNCTION) or not place:
                continue
            known = self.symbols.get(address)
            if known is None or (is_global and not known.is_global) or not known.size:
                symbol = Symbol(_text(strings, name), kind, is_global, address, size)
                self.symbols[address] = symbol

    def _check_defined(self, table: Section) -> None:
        strings = self.sections[table.link].content
        for name, info, _, place, _, _ in _SYMBOL.iter_unpack(table.content):
            if name and not place and info >> 4 != _WEAK:
                raise AsmError(f"symbol {_text(strings, name)} is not defined in this code")

    def _read_pointers(self, table: Section) -> None:
        symbols = self.sections[table.link].content
        for offset, _, index, addend in _RELOCATION.iter_unpack(table.content):
            value = _SYMBOL.unpack_from(symbols, index * _SYMBOL.size)[4] if index else 0
            self.pointers[offset] = value + addend

    def bytes_at(self, address: int, size: int) -> bytes:
        """The bytes at an address.

        Raises:
            AsmError: They do not lie within one section that has a content.
        """
        for section in self.sections:
            start = address - section.address
            if section.flags & ALLOCATED and 0 <= start <= len(section.content) - size:
                return section.content[start : start + size]
        raise AsmError(f"the code object has no {size} bytes at {address:#x}")

    @property
    def code_sections(self) -> list[Section]:
        """Sections of instructions."""
        wanted = ALLOCATED | EXECUTABLE
        return [s for s in self.sections if s.flags & wanted == wanted and s.content]

    def notes(self, owner: bytes) -> dict[int, bytes]:
        """Contents of the notes of one owner by kind."""
        notes = {}
        for section in self.sections:
            place, content = 0, section.content if section.kind == _NOTES else b""
            while place + _NOTE.size <= len(content):
                name, size, kind = _NOTE.unpack_from(content, place)
                start = place + _NOTE.size
                text = start + -(-name // 4) * 4
                if content[start : start + name].rstrip(b"\0") == owner:
                    notes[kind] = content[text : text + size]
                place = text + -(-size // 4) * 4
        return notes

    @property
    def functions(self) -> dict[int, str]:
        """Names of functions by address."""
        return {s.address: s.name for s in self.symbols.values() if s.kind == FUNCTION}

    @property
    def data_sections(self) -> list[Section]:
        """Sections of variables, tables and pointers."""
        skipped = (".note", ".relro_padding", ".dynamic")
        return [
            s
            for s in self.sections
            if s.flags & ALLOCATED
            and not s.flags & EXECUTABLE
            and s.kind in _PLAIN_DATA
            and s.size
            and s.name not in skipped
        ]


def _section(head: tuple[int, ...], content: bytes, strings: bytes) -> Section:
    name, kind, flags, address, offset, size, link = head[:7]
    bytes_of = b"" if kind == _NO_CONTENT else content[offset : offset + size]
    return Section(_text(strings, name), kind, flags, address, size, bytes_of, link)


def _text(strings: bytes, place: int) -> str:
    return strings[place : strings.index(b"\0", place)].decode()
