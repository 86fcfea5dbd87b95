"""Contents of a code object beside its kernels, in files that are made here."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest

from kernel_gym.plans.binary import BinaryFeatures, features_of
from kernel_gym.plans.code import check_code
from kernel_gym.plans.reading import BadPlanError
from kernel_gym.plans.types import CodeForm, PlanCode

MACHINES = {CodeForm.HSACO: 224, CodeForm.CUBIN: 190}
PROGRAM, SYMBOLS, TEXTS, NO_CONTENT, DYNAMIC_SYMBOLS = 1, 2, 3, 8, 11
WRITABLE, ALLOCATED = 1, 2
DATA_AT = 0x1000
"""The address of the only segment, which holds the first bytes of the file after the header."""
NOTHING = BinaryFeatures(False, (), False)


@dataclass
class Part:
    """A section."""

    name: str
    kind: int
    content: bytes
    flags: int = 0
    link: int = 0


def symbol(texts, name, section, value=0):
    """A symbol whose name is added to a table of texts."""
    place = len(texts)
    texts += name.encode() + b"\0"
    return struct.pack("<IBBHQQ", place, 0, 0, section, value, 0)


def code_of(*parts, form=CodeForm.HSACO, symbols=(), data=b"", kind=SYMBOLS):
    """A file with one loaded segment of data, these sections, and a table of symbols.

    Args:
        parts: Sections with content; they follow an empty one.
        form: Which machine it is for.
        symbols: Names, numbers of sections (0: it lacks the symbol) and values.
        data: The content of the segment.
        kind: The kind of the table.
    """
    texts = bytearray(b"\0")
    table = b"".join(symbol(texts, *one) for one in symbols)
    whole = [Part("", 0, b""), *parts]
    whole += [Part(".texts", TEXTS, bytes(texts)), Part(".symbols", kind, table)]
    whole[-1].link = len(whole) - 2
    names = bytearray(b"\0")
    rows, content, place = b"", data, 64 + 56 + len(data)
    for one in [*whole, Part(".names", TEXTS, b"")]:
        at = len(names)
        names += one.name.encode() + b"\0"
        body = bytes(names) if one.name == ".names" else one.content
        shown = one.kind if one.kind != NO_CONTENT else NO_CONTENT
        fields = at, shown, one.flags, DATA_AT, place, len(body), one.link, 0, 1, 0
        rows += struct.pack("<IIQQQQIIQQ", *fields)
        if one.kind != NO_CONTENT:
            content += body
            place += len(body)
    segment = struct.pack("<IIQQQQQQ", 1, 4, 120, DATA_AT, DATA_AT, len(data), len(data), 1)
    head = struct.pack(
        "<4sBBBB8xHHIQQQIHHHHHH",
        *(b"\x7fELF", 2, 1, 1, 64, 3, MACHINES[form], 1, 0, 64, place, 0, 64),
        *(56, 1, 64, len(whole) + 1, len(whole)),
    )
    return PlanCode(form, head + segment + content + rows)


def descriptor(properties):
    """The descriptor of a kernel, with these bits at its place for properties."""
    return bytes(56) + struct.pack("<H", properties) + bytes(6)


def test_a_plain_code_object_has_nothing():
    code = code_of(Part(".text", PROGRAM, b"code", ALLOCATED), symbols=[("k", 1)])
    assert features_of(code) == NOTHING
    check_code(code, "the code")


def test_assembler_text_has_nothing_of_its_own():
    assert features_of(PlanCode(CodeForm.ASSEMBLER, b"call cudaLaunchDevice")) == NOTHING


@pytest.mark.parametrize("form", MACHINES)
@pytest.mark.parametrize("kind", [SYMBOLS, DYNAMIC_SYMBOLS])
def test_functions_that_it_lacks_are_named(form, kind):
    names = [("malloc", 0), ("cudaGetParameterBufferV2", 0), ("own", 1), ("", 0)]
    code = code_of(Part(".text", PROGRAM, b"code"), form=form, symbols=names, kind=kind)
    assert features_of(code).missing == ("cudaGetParameterBufferV2", "malloc")
    with pytest.raises(BadPlanError, match=r"the code calls cudaGetParameterBufferV2, malloc"):
        check_code(code, "the code")


def test_functions_that_print_and_names_of_the_linker_are_permitted():
    names = [("vprintf", 0), ("__assertfail", 0), (".nv.reservedSmem.begin", 0)]
    code = code_of(form=CodeForm.CUBIN, symbols=names)
    assert features_of(code) == NOTHING
    check_code(code, "the code")


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Part(".data", PROGRAM, b"12345678", WRITABLE | ALLOCATED), True),
        (Part(".bss", NO_CONTENT, b"12345678", WRITABLE | ALLOCATED), True),
        (Part(".nv.global", NO_CONTENT, b"1234", WRITABLE | ALLOCATED), True),
        (Part(".data", PROGRAM, b"", WRITABLE | ALLOCATED), False),
        (Part(".rodata", PROGRAM, b"12345678", ALLOCATED), False),
        (Part(".comment", PROGRAM, b"12345678", WRITABLE), False),
        (Part(".nv.constant0.k", PROGRAM, b"1234", WRITABLE | ALLOCATED), False),
        (Part(".dynamic", 6, b"12345678", WRITABLE | ALLOCATED), False),
        (Part(".relro_padding", NO_CONTENT, b"1234", WRITABLE | ALLOCATED), False),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_memory_that_lives_as_long_as_the_module_is_a_variable(part, expected):
    assert features_of(code_of(part)).variables is expected


@pytest.mark.parametrize(("bits", "expected"), [(0, False), (4, True), (3, False), (0xFFFF, True)])
def test_a_kernel_that_asks_for_its_queue_is_refused(bits, expected):
    text = Part(".rodata", PROGRAM, b"", ALLOCATED)
    data = b"before it" + descriptor(bits)
    code = code_of(text, symbols=[("k.kd", 1, DATA_AT + 9)], data=data)
    assert features_of(code).queue is expected
    if expected:
        with pytest.raises(BadPlanError, match="asks for its queue"):
            check_code(code, "the code")
    else:
        check_code(code, "the code")


@pytest.mark.parametrize("address", [0, DATA_AT - 1, DATA_AT + 64, (1 << 64) - 57])
def test_a_descriptor_that_is_in_no_segment_is_refused(address):
    """Sections may state any address. What is loaded is decided by segments."""
    text = Part(".rodata", PROGRAM, b"", ALLOCATED)
    code = code_of(text, symbols=[("k.kd", 1, address)], data=descriptor(0))
    with pytest.raises(BadPlanError, match="ends within a table"):
        check_code(code, "the code")


def test_bits_of_a_cubin_are_no_properties_of_a_descriptor():
    code = code_of(
        Part(".text", PROGRAM, b""),
        form=CodeForm.CUBIN,
        symbols=[("k.kd", 1, DATA_AT)],
        data=descriptor(4),
    )
    assert features_of(code).queue is False
