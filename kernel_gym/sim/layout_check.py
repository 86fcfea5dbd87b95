"""Compares the layouts that C++ and Python share, and packs structures for the engine."""

from __future__ import annotations

import ctypes as ct
import enum
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from kernel_gym.sim import layouts

STRUCTURES: tuple[type[ct.Structure], ...] = (
    *(layouts.Operand, layouts.Inst, layouts.LaunchRequest),
    *(layouts.Registers, layouts.AuditInst, layouts.Suspect),
    *(layouts.TimedInst, layouts.BlockRange, layouts.ModelRequest, layouts.AccessCounts),
)
ENUMS: tuple[type[enum.IntEnum | enum.IntFlag], ...] = (
    *(layouts.Space, layouts.OperandFlag, layouts.ScalarIndex, layouts.Atomic),
    *(layouts.Format, layouts.Type, layouts.FaultKind, layouts.AuditKind, layouts.SuspectKind),
    *(layouts.Unit, layouts.SharingKind, layouts.Stall),
)


def packer(structure: type[ct.Structure]) -> struct.Struct:
    """A fast packer of a structure's numbers, in order.

    Raises:
        ValueError: If the structure has gaps between its fields.
    """
    packing = struct.Struct("<" + "".join(_codes(structure)))
    if packing.size != ct.sizeof(structure):
        raise ValueError(f"{structure.__name__} has gaps between its fields")
    return packing


def _codes(kind: Any) -> Iterator[str]:
    """Yields the format characters of :mod:`struct` for a ctypes type."""
    if issubclass(kind, ct.Structure):
        for _, field, *_ in kind._fields_:
            yield from _codes(field)
    elif issubclass(kind, ct.Array):
        for _ in range(kind._length_):
            yield from _codes(kind._type_)
    elif kind is ct.c_double:
        yield "d"
    else:
        yield {1: "B", 2: "H", 4: "I", 8: "Q"}[ct.sizeof(kind)]


def expected() -> dict[str, int]:
    """Offsets of fields, sizes of structures and values of enums that Python relies on.

    Returns:
        Numbers by name: ``Inst.dst`` (byte offset), ``Inst`` (bytes), ``Unit.kVector`` (value).
    """
    numbers: dict[str, int] = {}
    for structure in STRUCTURES:
        name = structure.__name__
        for field in layouts.field_names(structure):
            numbers[f"{name}.{field}"] = getattr(structure, field).offset
        numbers[name] = ct.sizeof(structure)
    for kind in ENUMS:
        for member in kind.__members__.values():
            numbers[f"{kind.__name__}.{_cpp_name(member.name or '')}"] = member.value
    return numbers


def _cpp_name(name: str) -> str:
    """The C++ name of an enum member: ``kReadsMemory`` for ``READS_MEMORY``."""
    return "k" + "".join(part.capitalize() for part in name.split("_"))


def check(numbers: Mapping[str, int]) -> None:
    """Compares the layouts of an engine library with those of layouts.py.

    Args:
        numbers: What the library reports, named as in :func:`expected`.

    Raises:
        RuntimeError: If a structure, field or enum value differs; names the first one.
    """
    wanted = expected()
    for name in [*wanted, *numbers]:
        if numbers.get(name) != wanted.get(name):
            raise RuntimeError(
                f"the engine library and kernel_gym/sim/layouts.py disagree on {name}: "
                f"{numbers.get(name, 'missing')} in the library, "
                f"{wanted.get(name, 'missing')} in Python. "
                "Build the library again: pip install -e ."
            )
