"""Addresses of stand-in tensors in arguments, in structs and in tables."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.plans.addresses import (
    STAND_IN_BASE,
    STAND_IN_BYTES,
    is_stand_in,
    put_references,
    stray_addresses,
    take_references,
)
from kernel_gym.plans.types import BufferReference


def place(address):
    return 3, address - STAND_IN_BASE


def test_the_range_has_its_ends():
    last = STAND_IN_BASE + STAND_IN_BYTES - 1
    for address in (STAND_IN_BASE, last):
        assert is_stand_in(address)
        assert stray_addresses(address.to_bytes(8, "little")) == [0]
    for address in (STAND_IN_BASE - 1, last + 1):
        assert not is_stand_in(address)
        assert stray_addresses(address.to_bytes(8, "little")) == []


def test_addresses_in_a_struct_become_references():
    data = struct.pack("<iiQQf4x", 7, -1, STAND_IN_BASE + 64, 12, 0.5)
    cleaned, references = take_references(data, place)
    assert references == (BufferReference(8, 3, 64),)
    assert cleaned == struct.pack("<iiQQf4x", 7, -1, 0, 12, 0.5)
    restored = put_references(cleaned, references, lambda buffer: STAND_IN_BASE)
    assert restored == data


@given(st.lists(st.integers(0, STAND_IN_BYTES - 1) | st.none(), max_size=9), st.binary(max_size=7))
def test_addresses_at_all_words_are_taken_and_put_back(words, rest):
    data = b"".join(
        struct.pack("<Q", 5 if word is None else STAND_IN_BASE + word) for word in words
    )
    cleaned, references = take_references(data + rest, place)
    assert [one.offset for one in references] == [word for word in words if word is not None]
    assert not any(at % 8 == 0 for at in stray_addresses(cleaned))
    assert put_references(cleaned, references, lambda buffer: STAND_IN_BASE) == data + rest
