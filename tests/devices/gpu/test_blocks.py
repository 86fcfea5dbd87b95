"""A worker's report of timed calls: false stamps and places give a value, not an exception."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_gym.devices.gpu import blocks as gpu_blocks
from kernel_gym.devices.gpu import runtime as gpu_runtime
from kernel_gym.devices.gpu.arena import ArenaPiece
from kernel_gym.devices.gpu.blocks import Places, copy_outputs, read_block, read_places
from kernel_gym.devices.gpu.runtime import HANDLE_BYTES, GpuRuntimeError

HONEST = {"ms": [0.5, 0.6, 0.4], "host": 30e-6}
HANDLE = "ab" * HANDLE_BYTES
TARGET = ArenaPiece(64, 16, "output")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


def test_stamps_of_calls_are_taken_as_seconds():
    block = read_block(HONEST, 3, 5e-3, 15.0)
    assert block.call_seconds == pytest.approx((0.5e-3, 0.6e-3, 0.4e-3))
    assert (block.wall_seconds, block.host_seconds) == (5e-3, 30e-6)


@pytest.mark.parametrize(
    "stamps",
    [
        [],
        [0.5, 0.6],
        [0.5, 0.6, 0.4, 0.1],
        [0.01] * 40 + [3.0],
        [0.5, math.inf, 0.4],
        [0.5, math.nan, 0.4],
        [0.5, 5e-324, 0.4],
        [0.5, 0.0, 0.4],
        [0.5, -0.1, 0.4],
        [0.5, True, 0.4],
        [0.5, 1, 0.4],
        [0.5, "0.6", 0.4],
        [2.0, 2.0, 2.0],
        None,
        {"0": 0.5},
    ],
    ids=str,
)
def test_stamps_that_cannot_be_those_of_three_calls_in_five_milliseconds_are_refused(stamps):
    assert read_block(HONEST | {"ms": stamps}, 3, 5e-3, 15.0) is None


@pytest.mark.parametrize("host", [None, -1.0, 15.0, math.nan, math.inf, 1, "0"], ids=str)
def test_a_host_time_that_is_none_is_refused(host):
    assert read_block(HONEST | {"host": host}, 3, 5e-3, 15.0) is None


class Memory:
    """An arena on the host."""

    size = 256

    def __init__(self):
        self.bytes = torch.zeros(self.size, dtype=torch.uint8)

    def view(self, piece):
        return self.bytes[piece.start : piece.end]


@pytest.fixture
def arena(monkeypatch):
    """The arena, and another process's allocation of 100 bytes behind any handle."""

    def read(handle, offset, target):
        if not 0 <= offset <= 100 - target.numel():
            raise GpuRuntimeError("outside")
        target.fill_(7)

    monkeypatch.setattr(gpu_runtime, "read_exported", read)
    return Memory()


def test_the_judge_reads_an_output_where_the_worker_says(arena):
    places = read_places({"places": [[[0, 84, 16]]], "handles": [HANDLE]})
    assert copy_outputs(arena, places, 0, [TARGET])
    assert arena.view(TARGET).eq(7).all()


def test_an_output_in_the_arena_is_read_there(arena):
    arena.bytes[0:16] = 5
    assert copy_outputs(arena, Places([[[-1, 0, 16]]], []), 0, [TARGET])
    assert arena.view(TARGET).eq(5).all()
    assert copy_outputs(arena, Places([[[-1, TARGET.start, 16]]], []), 0, [TARGET])


@pytest.mark.parametrize(
    "place",
    [
        [],
        [0, 0],
        [0, 0, 15],
        [0, 0, 17],
        [0, -1, 16],
        [0, 85, 16],
        [0, 1 << 80, 16],
        [1, 0, 16],
        [-2, 0, 16],
        [-1, 241, 16],
        [-1, -16, 16],
        [True, 0, 16],
        [0, 0.0, 16],
        ["0", 0, 16],
        {"0": 0},
        None,
    ],
    ids=str,
)
def test_a_place_that_is_none_is_refused(arena, place):
    assert not copy_outputs(arena, Places([[place]], [HANDLE]), 0, [TARGET])


@pytest.mark.parametrize(
    "handle", ["", "ab", "zz" * HANDLE_BYTES, HANDLE + "ab", 7, None, [HANDLE]]
)
def test_a_handle_that_is_none_is_refused(arena, handle):
    assert not copy_outputs(arena, Places([[[0, 0, 16]]], [handle]), 0, [TARGET])


@settings(max_examples=300, deadline=None)
@given(JSON, JSON, JSON, JSON)
def test_no_answer_raises(ms, host, places, handles):
    answer = {"ms": ms, "host": host, "places": places, "handles": handles}
    answer = json.loads(json.dumps(answer))
    assert gpu_blocks.read_block(answer, 3, 5e-3, 15.0) is None
    assert copy_outputs(Memory(), read_places(answer), 0, [TARGET]) in (True, False)
