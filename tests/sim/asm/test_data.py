"""Data objects of a code object: their sizes, their places and their pointers."""

from __future__ import annotations

import ctypes as ct

import pytest

from kernel_gym.sim.asm import data as asm_data
from kernel_gym.sim.asm.data import Storage, check_room
from kernel_gym.sim.asm.errors import AsmError
from tests.sim.support import kernel_text, parse


def read(text):
    """The objects in a text of data directives, which stands behind a kernel."""
    section = f"\t.data\n\t.p2align 8\n{text}\n\t.section\t.rodata"
    return parse(kernel_text("\ts_nop 0").replace("\t.section\t.rodata", section)).data


OBJECT = "\t.type {0},@object\n{0}:\n"


def test_the_size_of_a_variable_has_no_padding():
    a, b = OBJECT.format("a"), OBJECT.format("b")
    objects = read(f"{a}\t.long 7\n\t.size a, 4\n\t.p2align 4\n{b}\t.byte 1\n\t.size b, 1")
    storage = Storage(objects)
    assert storage.sizes == {"a": 4, "b": 1}
    assert ct.c_uint32.from_address(storage.addresses["a"]).value == 7


def test_objects_keep_their_distances():
    names = [OBJECT.format(name) for name in "abc"]
    text = "{}\t.byte 1,2,3\n\t.size a, 3\n{}\t.byte 4\n\t.size b, 1\n\t.org 0x1680\n{}\t.zero 8"
    storage = Storage(read(text.format(*names)))
    places = storage.addresses
    assert (places["b"] - places["a"], places["c"] - places["a"]) == (3, 0x1680)
    assert places["a"] % 256 == 0
    assert ct.string_at(places["a"], 4) == bytes([1, 2, 3, 4])
    assert storage.size >= 0x1688


def test_a_pointer_names_its_object():
    a, b = OBJECT.format("a"), OBJECT.format("b")
    objects = read(f"{a}\t.quad b+8\n\t.quad k\n\t.size a, 16\n{b}\t.zero 16\n\t.size b, 16")
    assert objects["a"].relocations == [(0, "b", 8), (8, "k", 0)]


def test_a_device_gives_the_place_of_variables():
    memory = ct.create_string_buffer(4096)
    start = -(-ct.addressof(memory) // 256) * 256
    asked = []
    storage = Storage(read(OBJECT.format("a") + "\t.long 9"), lambda n: asked.append(n) or start)
    assert storage.addresses["a"] == start
    assert asked == [256]


def test_gaps_count_as_room():
    objects = read(f"{OBJECT.format('a')}\t.byte 1\n\t.org 0x100000\n{OBJECT.format('b')}\t.byte 1")
    check_room(objects, [], 2 << 20)
    with pytest.raises(AsmError, match="expected 65536 in all"):
        check_room(objects, [], 1 << 16)


def test_zeros_that_take_no_room_in_the_file_are_bounded(monkeypatch):
    monkeypatch.setattr(asm_data, "MAX_DATA_BYTES", 1 << 20)
    with pytest.raises(AsmError, match="bytes of data objects, expected at most 1048576"):
        read(f"\t.bss\n{OBJECT.format('a')}\t.zero 0x200000")
