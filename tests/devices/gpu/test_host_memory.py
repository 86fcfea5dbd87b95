"""Memory shared with launchers: offsets behind the host's are in the staging memory."""

from __future__ import annotations

from contextlib import closing

import pytest
import torch

from kernel_gym.devices.gpu.host_memory import HostMemory

HOST, STAGED = 1 << 12, 1 << 10


class Staging:
    """Staging memory, on the host."""

    def __init__(self, size):
        self.size, self.bytes = size, torch.zeros(size, dtype=torch.uint8)

    def write(self, offset, data):
        self.bytes[offset : offset + data.numel()] = data

    def read(self, offset, size):
        return self.bytes[offset : offset + size].clone()


@pytest.fixture
def memory():
    with closing(HostMemory(HOST, torch.device("cpu"), Staging(STAGED))) as opened:
        yield opened


def pieces(*sizes):
    return [torch.arange(size).to(torch.uint8) + 1 for size in sizes]


@pytest.mark.parametrize(("size", "begin"), [(0, 0), (1, HOST), (STAGED, HOST), (STAGED + 1, 0)])
def test_a_call_is_staged_if_all_of_it_fits(memory, size, begin):
    assert memory.begin(size) == begin


@pytest.mark.parametrize(("sizes", "staged"), [((16, 8), True), ((STAGED, 1), False)])
def test_inputs_lie_one_behind_the_other_in_one_of_both(memory, sizes, staged):
    given, offset = pieces(*sizes), 256
    begin = memory.stage(offset, given)
    assert begin == (HOST if staged else offset)
    assert torch.equal(memory.read(begin, sum(sizes)), torch.cat(given))
    assert bool(memory._staging.bytes.any()) is staged
    assert any(memory.file.memory[:]) is not staged


def test_what_was_read_is_a_copy(memory):
    for begin in (0, HOST):
        memory.write(begin, pieces(4)[0])
        before = memory.read(begin, 4)
        memory.write(begin, torch.zeros(4, dtype=torch.uint8))
        assert before.tolist() == [1, 2, 3, 4]
