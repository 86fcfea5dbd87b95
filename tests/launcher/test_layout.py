"""Layouts of buffers: no overlap, guards around each, alignment, and enough room."""

import random

import pytest

from kernel_gym.launcher.layout import GUARD_BYTES, draw_layout, room_for

SIZES = [[], [0], [1], [256], [4096, 1, 0, 255, 257], [1 << 20] * 3]


@pytest.mark.parametrize("sizes", SIZES)
def test_each_buffer_lies_between_two_guards(sizes):
    for seed in range(50):
        layout = draw_layout(sizes, random.Random(seed))
        assert len(layout.guards) == len(sizes) + 1
        place = layout.guards[0][0]
        for (start, length), offset, size in zip(
            layout.guards, layout.offsets, sizes, strict=False
        ):
            assert start == place
            assert length >= GUARD_BYTES
            assert offset == start + length
            place = offset + size
        assert layout.guards[-1][0] == place
        assert sum(layout.guards[-1]) <= layout.size == room_for(sizes)


def test_buffers_are_aligned_and_their_place_is_drawn():
    layouts = [draw_layout([1000, 3], random.Random(seed)) for seed in range(50)]
    assert all(offset % 256 == 0 for layout in layouts for offset in layout.offsets)
    assert len({layout.offsets for layout in layouts}) > 10
