"""Calls of the host: the protocol of ROCm's device library, and C's formats."""

from __future__ import annotations

import ctypes as ct
import struct

import pytest

from kernel_gym.sim.engine import host_calls
from kernel_gym.sim.engine.host_calls import BUFFER_BYTES, HostCalls, formatted


def words(*values):
    """The words of a message: strings, integers and floats."""
    content = b""
    for value in values:
        if isinstance(value, bytes):
            content += value + bytes(8 - len(value) % 8)
        else:
            content += struct.pack("<d" if isinstance(value, float) else "<q", value)
    return content


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (words(b"plain"), b"plain"),
        (words(b"%d %u", -3, -3), b"-3 4294967293"),
        (words(b"%hhd %ld %llx", 300, -(1 << 40), 255), b"44 -1099511627776 ff"),
        (words(b"%-6s|%.2s|", b"ab", b"abcdefghij"), b"ab    |ab|"),
        (words(b"%s%s", b"exactly8", b"end"), b"exactly8end"),
        (words(b"%*d|%.*f", 5, 42, 2, 3.14159), b"   42|3.14"),
        (words(b"%5.1f %e %g %a", 2.25, 1.5, 0.1, 1.0), b"  2.2 1.500000e+00 0.1 0x1p+0"),
        (words(b"%c%c%%", 65, 66), b"AB%"),
        (words(b"%p %n%d", 4096, 0, 7), b"0x1000 7"),
        (words(b"%q %d", 5), b"%q 5"),
        (words(b"%d %d", 1), b"1 0"),
    ],
)
def test_formats(content, expected):
    assert formatted(content) == expected


class Device:
    """Sends calls as a wave does."""

    def __init__(self):
        self.memory = ct.create_string_buffer(BUFFER_BYTES)
        self.said = []
        self.host = HostCalls(ct.addressof(self.memory), self.write)

    def write(self, text, to_stderr):
        """Keeps what is printed."""
        self.said.append((text, to_stderr))

    def fields(self):
        """Headers, payloads, doorbell, free stack, ready stack and mask."""
        return (ct.c_uint64 * 6).from_address(self.host.buffer)

    def call(self, lanes, payload):
        """Sends one packet, has it answered, and returns the first words of the lanes."""
        fields = self.fields()
        link = fields[3]
        header = fields[0] + (link & fields[5]) * 24
        place = fields[1] + (link & fields[5]) * 4096
        fields[3] = ct.c_uint64.from_address(header).value
        ct.memmove(header, struct.pack("<QQII", fields[4], lanes, 2, 1), 24)
        for lane, numbers in payload.items():
            ct.memmove(place + 64 * lane, struct.pack("<8Q", *numbers), 64)
        fields[4] = link
        self.host.serve()
        assert ct.c_uint32.from_address(header + 20).value == 0, "the packet is not answered"
        answers = [ct.c_uint64.from_address(place + 64 * lane).value for lane in payload]
        ct.c_uint64.from_address(header).value = fields[3]
        fields[3] = link + fields[5] + 1  # with another tag
        return answers


def test_lanes_build_messages_of_their_own():
    device = Device()
    begun = device.call(0b101, {0: [0x21] + [0] * 7, 2: [0x21, 1] + [0] * 6})
    text = int.from_bytes(b"lane %d\0", "little")
    end = {0: [begun[0] | 2 | 2 << 5, text, 0], 2: [begun[1] | 2 | 2 << 5, text, 2]}
    lengths = device.call(0b101, {lane: numbers + [0] * 5 for lane, numbers in end.items()})
    assert device.said == [(b"lane 0", False), (b"lane 2", True)]
    assert lengths == [6, 6]
    assert device.fields()[4] == 0


def test_a_muted_host_answers_and_prints_nothing():
    device = Device()
    text = int.from_bytes(b"silent\0\0", "little")
    with device.host.mute():
        assert device.call(1, {0: [1 | 2 | 2 << 5, 0, text] + [0] * 5}) == [6]
    assert device.said == []


def test_packets_are_more_than_the_waves_of_a_device():
    device = Device()
    fields = device.fields()
    seen, link = set(), fields[3]
    while link:
        number = link & fields[5]
        assert number not in seen
        seen.add(number)
        link = ct.c_uint64.from_address(fields[0] + number * 24).value
    assert len(seen) == host_calls._PACKETS
    assert len(seen) > 304 * 32
