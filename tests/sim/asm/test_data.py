"""Data objects of an assembler text: their sizes and their places."""

from __future__ import annotations

import ctypes as ct

import pytest

from kernel_gym.sim.asm.data import DataReader, Storage, check_room
from kernel_gym.sim.asm.errors import AsmError


def read(text):
    """The objects in a text of data directives."""
    objects = {}
    reader = DataReader(objects)
    reader.section(".data")
    for number, line in enumerate(text.split("\n")):
        name, _, argument = line.strip().partition(" ")
        if name.endswith(":"):
            reader.label(name[:-1])
        elif name:
            reader.directive(name, argument, number, line)
    return objects


def test_the_size_of_a_variable_has_no_padding():
    objects = read("a:\n.long 7\n.size a, 4\n.p2align 4\nb:\n.byte 1\n.size b, .Lend-b")
    storage = Storage(objects)
    assert storage.sizes == {"a": 4, "b": 1}
    assert ct.c_uint32.from_address(storage.addresses["a"]).value == 7


def test_linked_objects_keep_their_distances():
    objects = read(".org 0x980\na:\n.byte 1,2,3\n.org 0x983\nb:\n.byte 4\n.org 0x2000\nc:\n.zero 8")
    storage = Storage(objects)
    places = storage.addresses
    assert (places["b"] - places["a"], places["c"] - places["a"]) == (3, 0x2000 - 0x980)
    assert places["a"] % 256 == 0x980 % 256
    assert ct.string_at(places["a"], 4) == bytes([1, 2, 3, 4])
    assert storage.size >= 0x2008 - 0x980


def test_a_device_gives_the_place_of_variables():
    memory = ct.create_string_buffer(4096)
    start = -(-ct.addressof(memory) // 256) * 256
    asked = []
    storage = Storage(read("a:\n.long 9"), lambda size: asked.append(size) or start)
    assert storage.addresses["a"] == start
    assert asked == [256]


def test_gaps_count_as_room():
    objects = read(".org 0\na:\n.byte 1\n.org 0x100000\nb:\n.byte 1")
    check_room(objects, [], 2 << 20)
    with pytest.raises(AsmError, match="expected 65536 in all"):
        check_room(objects, [], 1 << 16)
