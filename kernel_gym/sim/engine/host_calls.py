"""Serves kernels that call the host: `printf` and `assert` of HIP, `device_print` of Triton.

ROCm's device library sends such a call as a packet in memory. A wave takes a packet from the stack
of free ones, fills in eight 64-bit words a lane, pushes it on the stack of ready ones and raises an
interrupt. Here the interrupt runs `HostCalls.serve` at once, so no wave ever waits. The layout was
read from the compiled library (`__ockl_hostcall_internal`, ROCm 5.2; the same in 6).
"""

from __future__ import annotations

import ctypes as ct
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HOST_CALL_ARGUMENT = "hidden_hostcall_buffer"
_PACKETS = 1 << 14
"""A power of two; more than the waves that a device can hold, because each may have one."""
_LANES, _WORDS = 64, 8
_HEADER = struct.Struct("<QQII")  # next, active lanes, service, control
_BUFFER = struct.Struct("<QQQQQQ")  # headers, payloads, doorbell, free stack, ready stack, mask
_READY_STACK = 32  # bytes from the begin of the buffer
_DOORBELL, _MAILBOX, _HEADERS = 64, 128, 256  # places in the memory
_PAYLOADS = _HEADERS + _PACKETS * _HEADER.size
_PAYLOAD_BYTES = _LANES * _WORDS * 8
BUFFER_BYTES = _PAYLOADS + _PACKETS * _PAYLOAD_BYTES
"""Bytes of device memory that the packets need. Few of them are ever touched."""

_PRINTF = 2  # number of the service
_BEGIN, _END = 1, 2  # flags of a message
_STDERR = 1  # flag in the first word of a message
MAX_MESSAGE_WORDS = 1 << 16  # of one message
_SPECIFICATION = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    rb"(?P<length>hh|h|ll|l|j|z|t|L)?(?P<kind>[diouxXcspaAeEfFgGn%])"
)
_BYTES = {b"hh": 1, b"h": 2, b"": 4}
_libc = ct.CDLL(None)

Write = Callable[[bytes, bool], None]
"""Takes printed text, and whether it goes to the error output."""


class HostCalls:
    """The host's side of the calls of one device.

    Args:
        memory: Address of `BUFFER_BYTES` of zeroed device memory, also valid in this process.
        write: Where printed text goes.
    """

    def __init__(self, memory: int, write: Write) -> None:
        self.buffer = memory
        self._muted = False
        self._write = write
        self._messages: dict[int, list[int]] = {}
        self._next_message = 1
        links = [0, _PACKETS, *range(1, _PACKETS - 1)]  # packet 0 has a tag, as 0 ends a stack
        headers = b"".join(_HEADER.pack(link, 0, 0, 0) for link in links)
        ct.memmove(memory + _HEADERS, headers, len(headers))
        words = memory + _HEADERS, memory + _PAYLOADS, memory + _DOORBELL, _PACKETS - 1, 0
        ct.memmove(memory, _BUFFER.pack(*words, _PACKETS - 1), _BUFFER.size)
        # A signal: kind, value, address of the mailbox, number of the event.
        ct.memmove(memory + _DOORBELL, struct.pack("<QQQQ", 1, 0, memory + _MAILBOX, 1), 32)

    def serve(self) -> None:
        """Answers all packets that are ready."""
        top = ct.c_uint64.from_address(self.buffer + _READY_STACK)
        link, top.value = top.value, 0
        while link:
            number = link & (_PACKETS - 1)
            place = self.buffer + _HEADERS + number * _HEADER.size
            following, lanes, service, control = _HEADER.unpack(ct.string_at(place, _HEADER.size))
            for lane in range(_LANES):
                if lanes >> lane & 1:
                    self._answer(number, lane, service)
            ct.c_uint32.from_address(place + _HEADER.size - 4).value = control & ~1
            link = following

    def _answer(self, packet: int, lane: int, service: int) -> None:
        place = self.buffer + _PAYLOADS + packet * _PAYLOAD_BYTES + lane * _WORDS * 8
        words = (ct.c_uint64 * _WORDS).from_address(place)
        if service == _PRINTF:
            words[0] = self._append(list(words))
        else:  # such as memory for malloc in a kernel: there is none
            words[0] = words[1] = 0

    @contextmanager
    def mute(self) -> Iterator[None]:
        """Drops text: an audit and the clock run a launch several times."""
        self._muted = True
        yield
        self._muted = False

    def _append(self, words: list[int]) -> int:
        """Adds a lane's words to its message; returns the message, or what printf returns."""
        descriptor = words[0]
        if descriptor & _BEGIN:
            number = self._next_message
            self._next_message += 1
            self._messages[number] = []
        else:
            number = descriptor >> 8
        message = self._messages.setdefault(number, [])
        message += words[1 : 1 + (descriptor >> 5 & 7)]
        if not descriptor & _END and len(message) < MAX_MESSAGE_WORDS:
            return number << 8
        del self._messages[number]
        text = formatted(struct.pack(f"<{len(message) - 1}Q", *message[1:])) if message else b""
        if not self._muted:
            self._write(text, bool(message and message[0] & _STDERR))
        return len(text)


def formatted(content: bytes) -> bytes:
    """Formats a message as `printf` of C does.

    Args:
        content: The format, ended by a zero and filled up to 64-bit words, then one word for each
            argument. A string is there in the same form as the format.
    """
    format_text, place = _string(content, 0)
    pieces, end = [], 0
    for match in _SPECIFICATION.finditer(format_text):
        pieces.append(format_text[end : match.start()])
        end = match.end()
        flags, kind = match["flags"], match["kind"]
        if kind == b"%":
            pieces.append(b"%")
            continue
        shape = b"%" + flags
        for part, sign in ((match["width"], b""), (match["precision"], b".")):
            if part == b"*":
                part = b"%d" % _signed(_word(content, place), 4)
                place += 8
            shape += b"" if part is None else sign + part
        if kind == b"s":
            text, place = _string(content, place)
            pieces.append(_c_text(shape + b"s", ct.c_char_p(text)))
            continue
        pieces.append(_number(shape, match["length"] or b"", kind, _word(content, place)))
        place += 8
    return b"".join([*pieces, format_text[end:]])


def _number(shape: bytes, length: bytes, kind: bytes, word: int) -> bytes:
    if kind == b"n":
        return b""
    if kind in b"aAeEfFgG":
        return _c_text(shape + kind, ct.c_double(struct.unpack("<d", struct.pack("<Q", word))[0]))
    if kind == b"c":
        return _c_text(shape + kind, ct.c_int(word & 0xFF))
    if kind == b"p":
        return _c_text(shape + kind, ct.c_void_p(word))
    size = _BYTES.get(length, 8)
    number = _signed(word, size) if kind in b"di" else word & ((1 << 8 * size) - 1)
    return _c_text(shape + b"ll" + kind, ct.c_longlong(number))


def _c_text(shape: bytes, value: object) -> bytes:
    size = _libc.snprintf(None, 0, shape, value)
    buffer = ct.create_string_buffer(max(size, 0) + 1)
    _libc.snprintf(buffer, ct.c_size_t(len(buffer)), shape, value)
    return buffer.value if shape[-1:] != b"c" else buffer.raw[:-1]


def _signed(word: int, size: int) -> int:
    word &= (1 << 8 * size) - 1
    return word - (1 << 8 * size) if word >> (8 * size - 1) else word


def _word(content: bytes, place: int) -> int:
    return int.from_bytes(content[place : place + 8], "little")


def _string(content: bytes, place: int) -> tuple[bytes, int]:
    """A string at a place, and the place of the word after it."""
    text = content[place:].partition(b"\0")[0]
    return text, place + (len(text) // 8 + 1) * 8
