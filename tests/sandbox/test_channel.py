"""The pipe to a process that may be hostile."""

import socket
import struct
import threading

import pytest

from kernel_gym.sandbox.channel import (
    MAX_BUFFER,
    Channel,
    ChannelClosed,
    ChannelMalformed,
    ChannelTimeout,
)


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    yield Channel(ours, buffers=2), theirs
    ours.close()
    theirs.close()


def test_a_message_arrives_whole_with_its_buffers(ends):
    channel, theirs = ends
    Channel(theirs).send({"do": "x", "n": 3}, b"abc", bytes(100_000))
    message = channel.recv(timeout=5)
    assert message.header == {"do": "x", "n": 3}
    assert message.buffers == (b"abc", bytes(100_000))


def test_silence_ends_at_the_deadline(ends):
    channel, _ = ends
    with pytest.raises(ChannelTimeout):
        channel.recv(timeout=0.01)


@pytest.mark.parametrize("spin", [0.001, 5])
def test_who_listens_without_sleeping_hears_the_same(ends, spin):
    channel, theirs = ends
    with pytest.raises(ChannelTimeout):
        channel.recv(timeout=0.01, spin=0.001)
    Channel(theirs).send({"do": "x"}, b"abc")
    assert channel.recv(timeout=5, spin=spin).buffers == (b"abc",)
    theirs.close()
    with pytest.raises(ChannelClosed):
        channel.recv(timeout=5, spin=spin)


def test_half_a_message_ends_at_the_deadline_too(ends):
    channel, theirs = ends
    theirs.sendall(struct.pack("<II", 10, 0) + b'{"a"')
    with pytest.raises(ChannelTimeout):
        channel.recv(timeout=0.01)


def test_a_late_answer_is_not_taken_for_the_next_one(ends):
    channel, peer = ends
    with pytest.raises(ChannelTimeout):
        channel.request({"ask": 1}, timeout=0.01)
    Channel(peer).send({"answer": 1})
    with pytest.raises(ChannelClosed, match="an earlier request has no answer"):
        channel.request({"ask": 2}, timeout=5)


def test_buffers_have_the_bound_of_their_channel():
    ours, theirs = socket.socketpair()
    channel = Channel(ours, buffers=1, size=4)
    Channel(theirs).send({}, b"four")
    assert channel.recv(timeout=5).buffers == (b"four",)
    Channel(theirs).send({}, b"fiver")
    with pytest.raises(ChannelMalformed, match="a buffer of 5 bytes"):
        channel.recv(timeout=5)


def test_a_closed_end_is_told(ends):
    channel, theirs = ends
    theirs.close()
    with pytest.raises(ChannelClosed):
        channel.recv(timeout=1)


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack("<II", 1 << 31, 0),
        struct.pack("<II", 2, 1 << 20),
        struct.pack("<IIQ", 2, 1, MAX_BUFFER + 1),
        struct.pack("<II", 3, 0) + b"{{{",
        struct.pack("<II", 2, 0) + b"[]",
        struct.pack("<II", 2, 0) + b"\xff\xfe",
    ],
    ids=["header size", "buffer count", "buffer size", "no JSON", "no object", "no text"],
)
def test_what_is_no_message_is_refused_before_it_is_read(ends, sent):
    channel, theirs = ends
    theirs.sendall(sent)
    with pytest.raises(ChannelMalformed):
        channel.recv(timeout=1)


@pytest.mark.parametrize(
    "use",
    [
        lambda channel: channel.send({}),
        lambda channel: channel.recv(timeout=1),
        lambda channel: channel.recv(timeout=1, spin=0.1),
        lambda channel: channel.request({}, timeout=lambda: 1),
    ],
)
def test_an_end_that_was_closed_here_is_closed_too(ends, use):
    channel, _ = ends
    channel.close()
    with pytest.raises(ChannelClosed):
        use(channel)


def test_a_thread_that_waits_is_told_of_the_end(ends):
    channel, _ = ends
    told = []

    def wait():
        with pytest.raises(ChannelClosed) as closed:
            channel.recv(timeout=60)
        told.append(closed.value)

    thread = threading.Thread(target=wait)
    thread.start()
    channel.end()
    thread.join()
    assert told
    channel.end()  # once more does no harm
