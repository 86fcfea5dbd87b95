"""Code objects of hostile processes: whole files pass, damaged ones are refused by name."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.plans.code import check_code
from kernel_gym.plans.reading import BadPlanError
from kernel_gym.plans.types import CodeForm, PlanCode

MACHINES = {CodeForm.HSACO: 224, CodeForm.CUBIN: 190}


def file_of(form=CodeForm.HSACO, **changes) -> bytes:
    """Returns a file with one segment and two sections, all over its first 200 bytes."""
    size = 64 + 56 + 2 * 64 + 32
    fields = {
        "magic": b"\x7fELF",
        "bits": 2,
        "order": 1,
        "machine": MACHINES[form],
        "segments": 64,
        "sections": 120,
        "segment_size": 56,
        "segment_count": 1,
        "section_size": 64,
        "section_count": 2,
        "names": 1,
        "end": size,
    } | changes
    head = struct.pack(
        "<4sBBBB8xHHIQQQIHHHHHH",
        *(fields["magic"], fields["bits"], fields["order"], 1, 64, 3, fields["machine"], 1, 0),
        *(fields["segments"], fields["sections"], 0, 64),
        *(fields["segment_size"], fields["segment_count"]),
        *(fields["section_size"], fields["section_count"], fields["names"]),
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, fields["end"], fields["end"], 4096)
    empty = struct.pack("<IIQQQQIIQQ", 0, 8, 0, 0, 1 << 40, 1 << 40, 0, 0, 0, 0)
    section = struct.pack("<IIQQQQIIQQ", 1, 1, 2, 0, 248, fields["end"] - 248, 0, 0, 4, 0)
    return head + segment + empty + section + bytes(32)


def refused(content, form=CodeForm.HSACO):
    try:
        check_code(PlanCode(form, content), "code 0")
    except BadPlanError as error:
        return str(error)
    return None


@pytest.mark.parametrize("form", MACHINES)
def test_whole_files_pass(form):
    assert refused(file_of(form), form) is None


WRONG = [
    ({"magic": b"\x7fELG"}, "no ELF file"),
    ({"bits": 1}, "no ELF file"),
    ({"order": 2}, "no ELF file"),
    ({"machine": 62}, "for machine 62, expected 224"),
    ({"segments": 1 << 62}, "ends within a table"),
    ({"sections": 250}, "ends within a table"),
    ({"segment_size": 55}, "another form"),
    ({"section_size": 0}, "another form"),
    ({"section_count": 0xFFFF}, "65535 sections"),
    ({"segment_count": 0xFFFF}, "65535 segments"),
    ({"names": 2}, "2 sections"),
    ({"end": 281}, "segment 0 of code 0 does not lie within"),
    ({"end": 1 << 40}, "does not lie within"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_damaged_files_are_refused_by_name(changes, message):
    assert message in (refused(file_of(**changes)) or "")


@given(st.integers(0, 279))
def test_files_that_were_cut_are_refused(size):
    assert refused(file_of()[:size])


@given(st.binary(max_size=400))
def test_any_bytes_are_refused_or_pass(content):
    for form in CodeForm:
        for data in (content, b"\x7fELF" + content, file_of() + content):
            refused(data, form)


def test_assembler_is_text():
    assert refused("ÄÖ".encode(), CodeForm.ASSEMBLER) is None
    assert "no text" in (refused(b"\xff", CodeForm.ASSEMBLER) or "")
