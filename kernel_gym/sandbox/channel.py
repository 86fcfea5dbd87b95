"""A private pipe between two processes: JSON headers and raw buffers, never a pickle.

The other end may be hostile. Every size is checked before anything is read, every read has a
deadline, and bytes that do not parse are an error of the peer.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_PREFIX = struct.Struct("<II")
_LENGTH = struct.Struct("<Q")

MAX_HEADER = 16 << 20
MAX_ANSWER = 1 << 20
"""Most bytes of JSON from a worker to the judge. Parsed, they take up to thirty times that size."""
MAX_BUFFER = 256 << 20
BLOCK_SPIN = 10e-3
"""Seconds to poll before sleeping, on both sides: most blocks of timed calls end within them."""


Patience = Callable[[], float | None]
"""Is asked before each wait for the peer. It returns the seconds after which it wants to be asked
again, None for any number, or raises `ChannelTimeout`."""


class ChannelError(Exception):
    """The peer closed the pipe, broke the protocol or did not answer in time."""


class ChannelClosed(ChannelError):
    """The peer closed its end: it exited, crashed or was killed."""


class ChannelTimeout(ChannelError):
    """The peer did not answer before the deadline."""


class ChannelMalformed(ChannelError):
    """The peer sent something that is not a message of the protocol."""


@dataclass(frozen=True)
class ChannelMessage:
    """A JSON object with raw buffers behind it."""

    header: dict[str, Any]
    buffers: tuple[bytes, ...] = ()


class Channel:
    """One end of the pipe.

    Args:
        sock: A connected stream socket, which the channel owns from now on.
        buffers: Limit of the raw buffers in a message from the peer.
        header: Limit of the JSON bytes in a message from the peer.
        size: Limit of the bytes of each raw buffer.
    """

    def __init__(
        self,
        sock: socket.socket,
        buffers: int = 0,
        header: int = MAX_HEADER,
        size: int = MAX_BUFFER,
    ) -> None:
        self._sock = sock
        self._buffers, self._header, self._size = buffers, header, size
        self._unanswered = False

    def fileno(self) -> int:
        """The descriptor, for selectors."""
        return self._sock.fileno()

    def send(
        self,
        header: Mapping[str, object],
        *buffers: bytes | memoryview,
        timeout: float | Patience | None = None,
    ) -> None:
        """Sends one message. Each part of it must be sent within `timeout` seconds.

        Raises:
            ChannelClosed: The peer is gone.
            ChannelTimeout: The peer does not read.
        """
        text = json.dumps(header, separators=(",", ":")).encode()
        lengths = b"".join(_LENGTH.pack(len(b)) for b in buffers)
        for part in (_PREFIX.pack(len(text), len(buffers)) + lengths + text, *buffers):
            self._write(memoryview(part).cast("B"), _patience(timeout))

    def recv(self, timeout: float | Patience | None = None, spin: float = 0.0) -> ChannelMessage:
        """Receives one message within `timeout` seconds.

        Args:
            timeout: Seconds for the whole message, or who knows them; None waits without a limit.
            spin: Seconds to poll before sleeping, since a wake-up takes 0.1 ms.

        Raises:
            ChannelClosed: The peer is gone.
            ChannelTimeout: No complete message arrived in time.
            ChannelMalformed: The sizes or the JSON are not those of a message.
        """
        patience = _patience(timeout)
        self._spin(spin)
        text_length, count = _PREFIX.unpack(self._read(_PREFIX.size, patience))
        if text_length > self._header or count > self._buffers:
            raise ChannelMalformed(f"a message of {text_length} bytes and {count} buffers")
        lengths = [_LENGTH.unpack(self._read(_LENGTH.size, patience))[0] for _ in range(count)]
        if any(length > self._size for length in lengths):
            raise ChannelMalformed(f"a buffer of {max(lengths)} bytes")
        text = self._read(text_length, patience)
        buffers = tuple(self._read(length, patience) for length in lengths)
        return ChannelMessage(_parse(text), buffers)

    def request(
        self,
        header: Mapping[str, object],
        *buffers: bytes | memoryview,
        timeout: float | Patience | None = None,
        spin: float = 0.0,
    ) -> ChannelMessage:
        """Sends a message and waits for the answer to it.

        Raises:
            ChannelClosed: The peer is gone, or an earlier request had no answer: that could still
                come, and would be taken for the answer to this one.
            ChannelTimeout: There is no answer in time.
            ChannelMalformed: The answer is no message.
        """
        if self._unanswered:
            raise ChannelClosed("an earlier request has no answer")
        self._unanswered = True
        self.send(header, *buffers, timeout=timeout)
        answer = self.recv(timeout, spin)
        self._unanswered = False
        return answer

    def end(self) -> None:
        """Ends the connection. Another thread that waits for a message finds the peer gone."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes this end."""
        self._sock.close()

    def _spin(self, seconds: float) -> None:
        """Polls until there is a byte or an error, which the next read will report."""
        end = time.monotonic() + seconds
        with contextlib.suppress(OSError):
            self._sock.settimeout(0)
        while time.monotonic() < end:
            try:
                self._sock.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                continue
            except OSError:
                pass
            return

    def _read(self, size: int, patience: Patience) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                self._sock.settimeout(patience())
                chunk = self._sock.recv(min(size - len(parts), 1 << 20))
            except TimeoutError:
                continue
            except OSError as error:
                raise ChannelClosed(f"the pipe broke: {error}") from error
            if not chunk:
                raise ChannelClosed("the peer closed the pipe")
            parts += chunk
        return bytes(parts)

    def _write(self, rest: memoryview, patience: Patience) -> None:
        while rest:
            try:
                self._sock.settimeout(patience())
                rest = rest[self._sock.send(rest) :]
            except TimeoutError:
                continue
            except OSError as error:
                raise ChannelClosed(f"the pipe is closed: {error}") from error


def _patience(timeout: float | Patience | None) -> Patience:
    if callable(timeout):
        return timeout
    if timeout is None:
        return lambda: None
    end = time.monotonic() + timeout

    def left() -> float:
        seconds = end - time.monotonic()
        if seconds <= 0:
            raise ChannelTimeout("the peer neither reads nor answers in time")
        return seconds

    return left


def _parse(text: bytes) -> dict[str, object]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ChannelMalformed(f"a header that is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise ChannelMalformed(f"a header that is a {type(header).__name__}, not an object")
    return header
