"""Layouts that C++ and Python share are compared when an engine library is loaded."""

from __future__ import annotations

import ctypes as ct
import enum

import pytest

from kernel_gym.sim import layout_check, layouts, native


@pytest.fixture
def isa() -> str:
    return native.choose_isa()


def test_every_shared_structure_and_enum_agrees(isa):
    reported = native.load_library(isa).layout()
    assert reported == layout_check.expected()
    for structure in layout_check.STRUCTURES:
        assert reported[structure.__name__] == ct.sizeof(structure)


def replaced(group: tuple, old: type, new: type) -> tuple:
    new.__name__ = old.__name__
    return tuple(new if each is old else each for each in group)


@pytest.mark.parametrize(
    ("structure", "change", "named"),
    [
        (layouts.LaunchRequest, lambda fields: [("extra", ct.c_uint32), *fields], "extra"),
        (layouts.LaunchRequest, lambda fields: [*fields, ("extra", ct.c_uint64)], "extra"),
        (layouts.ModelRequest, lambda fields: [fields[1], fields[0], *fields[2:]], "l1_latency"),
        (layouts.Suspect, lambda fields: fields[1:], "instruction"),
        (layouts.Inst, lambda fields: fields[:-1], None),
        (layouts.TimedInst, lambda fields: [fields[0], ("wide", ct.c_uint32), *fields[1:]], "wide"),
        (layouts.AuditInst, lambda fields: fields[:-1], None),
        (layouts.AccessCounts, lambda fields: [(f, ct.c_uint32) for f, _ in fields], "lanes"),
    ],
)
def test_a_library_with_another_structure_is_refused(monkeypatch, isa, structure, change, named):
    class Changed(ct.Structure):
        _fields_ = change(list(structure._fields_))

    tuple_ = replaced(layout_check.STRUCTURES, structure, Changed)
    monkeypatch.setattr(layout_check, "STRUCTURES", tuple_)
    name = f"{structure.__name__}.{named}" if named else structure.__name__
    with pytest.raises(RuntimeError, match=rf"disagree on {name}\b.*in the library.*in Python"):
        native.Library(isa)


@pytest.mark.parametrize("kind", layout_check.ENUMS)
def test_a_library_with_another_enum_is_refused(monkeypatch, isa, kind):
    members = {name: member.value for name, member in kind.__members__.items()}
    last = list(members)[-1]
    bases = enum.IntEnum
    fewer = bases(kind.__name__, {k: v for k, v in members.items() if k != last})
    other = bases(kind.__name__, {**members, last: members[last] + 1000})
    for changed in (fewer, other):
        enums = tuple(changed if each is kind else each for each in layout_check.ENUMS)
        monkeypatch.setattr(layout_check, "ENUMS", enums)
        with pytest.raises(RuntimeError, match=rf"disagree on {kind.__name__}\.k"):
            native.Library(isa)


def test_a_library_of_another_version_is_refused(monkeypatch, isa):
    monkeypatch.setitem(native._SIGNATURES, "sim_not_there", (None, []))
    with pytest.raises(RuntimeError, match="has no sim_not_there"):
        native.Library(isa)


def test_a_packer_writes_what_ctypes_reads():
    packing = layout_check.packer(layouts.AuditInst)
    numbers = list(range(1, 23))
    read = layouts.AuditInst.from_buffer_copy(packing.pack(*numbers))
    assert [read.kind, read.alignment, read.defines] == [1, 4, 6]
    assert [read.reads[0].first, read.writes[1].count] == [7, 22]


def test_a_structure_with_gaps_cannot_be_packed():
    class Gap(ct.Structure):
        _fields_ = [("small", ct.c_uint8), ("wide", ct.c_uint64)]

    with pytest.raises(ValueError, match="Gap has gaps"):
        layout_check.packer(Gap)
