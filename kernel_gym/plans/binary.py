"""Searches code objects for what a launch plan does not show: other launches, and kept state.

A plan states every launch of a call. So a kernel may not start others. On NVIDIA GPUs that needs
functions of the device runtime, which a code object names as missing symbols (CUDA C++ programming
guide, "CUDA Dynamic Parallelism"). On AMD GPUs it needs the address of the kernel's own queue,
which a bit of the kernel descriptor asks for (LLVM, "User Guide for AMDGPU Backend", Kernel
Descriptor).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from kernel_gym.plans.types import CodeForm, PlanCode

_HEADER = struct.Struct("<16x4xIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SEGMENT = struct.Struct("<II4Q16x")
_SYMBOLS, _DYNAMIC_SYMBOLS, _DYNAMIC = 2, 11, 6
_WRITABLE, _ALLOCATED = 1, 2
_LOADED = 1
_PROPERTIES_AT, _QUEUE_POINTER = 56, 1 << 2
_DESCRIPTOR = ".kd"
PERMITTED = frozenset(("vprintf", "__assertfail"))
"""Functions of the driver that a kernel may call: they print."""
_OWN = ".nv."
"""Symbols of NVIDIA's linker, such as the start of reserved shared memory."""
_FIXED = (".dynamic", ".relro_padding", ".got", ".nv.constant")
"""Writable sections that are no variables."""


@dataclass(frozen=True)
class BinaryFeatures:
    """Contents of a code object besides kernels that a plan launches."""

    variables: bool
    """Whether it has memory that lives as long as the module."""
    missing: tuple[str, ...]
    """Functions and variables that it wants of the driver."""
    queue: bool
    """Whether a kernel asks for the address of its queue."""


def features_of(code: PlanCode) -> BinaryFeatures:
    """Returns the features of a code object that `check_code` has checked.

    Args:
        code: A linked code object. Assembler text has none of its own: the simulator reads it.
    """
    if code.form is CodeForm.ASSEMBLER:
        return BinaryFeatures(False, (), False)
    sections = list(_sections(code.content))
    variables = any(_is_variable(section) for section in sections)
    symbols = [entry for section in sections for entry in _symbols(code.content, section, sections)]
    missing = {s.name for s in symbols if not s.section and _is_of_others(s.name)}
    queue = code.form is CodeForm.HSACO and any(
        _asks_for_queue(code.content, symbol) for symbol in symbols
    )
    return BinaryFeatures(variables, tuple(sorted(missing)), queue)


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True)
class _Symbol:
    name: str
    section: int
    value: int


def _sections(content: bytes) -> Iterator[_Section]:
    head = _HEADER.unpack_from(content)
    table, count, names = head[3], head[9], head[10]
    rows = [_SECTION.unpack_from(content, table + 64 * number) for number in range(count)]
    texts = rows[names][4] if count else 0
    for name, kind, flags, address, offset, size, link, *_ in rows:
        yield _Section(_text(content, texts + name), kind, flags, address, offset, size, link)


def _is_variable(section: _Section) -> bool:
    both = section.flags & _WRITABLE and section.flags & _ALLOCATED
    fixed = section.kind == _DYNAMIC or section.name.startswith(_FIXED)
    return bool(both and section.size and not fixed)


def _symbols(content: bytes, section: _Section, sections: list[_Section]) -> Iterator[_Symbol]:
    if section.kind not in (_SYMBOLS, _DYNAMIC_SYMBOLS) or section.link >= len(sections):
        return
    texts = sections[section.link].offset
    for place in range(section.offset, section.offset + section.size - 23, _SYMBOL.size):
        name, _, _, where, value, _ = _SYMBOL.unpack_from(content, place)
        yield _Symbol(_text(content, texts + name), where, value)


def _is_of_others(name: str) -> bool:
    """Whether a symbol that a code object lacks is a function or a variable of somebody else."""
    return bool(name) and not name.startswith(_OWN) and name not in PERMITTED


def _asks_for_queue(content: bytes, symbol: _Symbol) -> bool:
    """Whether a symbol is the descriptor of a kernel that asks for its queue.

    Raises:
        struct.error: The descriptor is in no segment, so that nothing of it would be loaded.
    """
    if not symbol.name.endswith(_DESCRIPTOR) or not symbol.section:
        return False
    place = _loaded_from(content, symbol.value) + _PROPERTIES_AT
    return bool(struct.unpack_from("<H", content, place)[0] & _QUEUE_POINTER)


def _loaded_from(content: bytes, address: int) -> int:
    """Returns the place in the file of an address: loaders go by segments, not by sections."""
    head = _HEADER.unpack_from(content)
    table, count = head[2], head[7]
    for number in range(count):
        kind, _, offset, start, _, size = _SEGMENT.unpack_from(content, table + 56 * number)
        if kind == _LOADED and start <= address < start + size:
            return int(offset + address - start)
    raise struct.error("a descriptor in no segment")


def _text(content: bytes, place: int) -> str:
    end = content.find(b"\0", place)
    return content[place : max(place, end)].decode(errors="replace")
