"""Reads the parts of an AMD GPU code object (ELF) that assembler text needs: symbols and data."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kernel_gym.sandbox.failures import BuildError

ALLOCATED, WRITABLE, EXECUTABLE = 2, 1, 4
_NO_CONTENT, _SYMBOLS, _ADDENDS = 8, 2, 4
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_OBJECT, _FUNCTION, _GLOBAL = 1, 2, 1
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
        sections: All of them, in the order of the file.
        symbols: Functions and objects by address; of several at one place the global one.
        pointers: Target address by the address of an 8-byte pointer that the loader fills in.

    Raises:
        BuildError: The file is damaged.
    """

    def __init__(self, content: bytes) -> None:
        try:
            self._read(content)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise BuildError(f"the code object is damaged: {error}") from None

    def _read(self, content: bytes) -> None:
        (table,) = struct.unpack_from("<Q", content, 40)
        size, count, names = struct.unpack_from("<HHH", content, 58)
        heads = [_SECTION.unpack_from(content, table + size * i) for i in range(count)]
        strings = content[heads[names][4] :]
        self.sections = [_section(head, content, strings) for head in heads]
        self.symbols: dict[int, Symbol] = {}
        for section in self.sections:
            if section.kind == _SYMBOLS:
                self._read_symbols(section)
        self.pointers: dict[int, int] = {}
        for section in self.sections:
            if section.kind == _ADDENDS:
                self._read_pointers(section)

    def _read_symbols(self, table: Section) -> None:
        strings = self.sections[table.link].content
        for name, info, _, place, address, size in _SYMBOL.iter_unpack(table.content):
            kind, is_global = info & 15, info >> 4 == _GLOBAL
            if kind not in (_OBJECT, _FUNCTION) or not place:
                continue
            known = self.symbols.get(address)
            if known is None or (is_global and not known.is_global) or not known.size:
                symbol = Symbol(_text(strings, name), kind, is_global, address, size)
                self.symbols[address] = symbol

    def _read_pointers(self, table: Section) -> None:
        symbols = self.sections[table.link].content
        for offset, _, index, addend in _RELOCATION.iter_unpack(table.content):
            value = _SYMBOL.unpack_from(symbols, index * _SYMBOL.size)[4] if index else 0
            self.pointers[offset] = value + addend

    @property
    def functions(self) -> dict[int, str]:
        """Names of functions by address."""
        return {s.address: s.name for s in self.symbols.values() if s.kind == _FUNCTION}

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
