"""The memory that PyTorch's allocator keeps free, and what poisons it."""

import pytest
import torch

from kernel_gym.worker.gpu.free_memory import free_pieces, poison_free_memory

MIB = 1 << 20


def _segment(*blocks, kind="large", stream=0, pool=(0, 0)):
    named = [{"size": size, "state": state} for size, state in blocks]
    return {"stream": stream, "segment_pool_id": pool, "segment_type": kind, "blocks": named}


def test_free_blocks_are_taken_whole_and_used_ones_are_not():
    segment = _segment((8 * MIB, "active_allocated"), (12 * MIB, "inactive"))
    pending = _segment((30 * MIB, "active_pending_free"))
    assert free_pieces([segment, pending], 0) == [12 * MIB]


def test_small_blocks_are_taken_in_pieces_that_stay_small():
    segment = _segment((512, "inactive"), (MIB + 512, "inactive"), kind="small")
    assert free_pieces([segment], 0) == [512, MIB, 512]


def test_memory_of_graphs_and_of_other_streams_is_left():
    graph = _segment((20 * MIB, "inactive"), pool=(0, 1))
    other = _segment((20 * MIB, "inactive"), stream=7)
    assert free_pieces([graph, other], 0) == []


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_whatever_is_allocated_next_is_poisoned():
    torch.cuda.empty_cache()
    old = [torch.zeros(n, dtype=torch.uint8, device="cuda") for n in (40 * MIB, 700, 9 * MIB)]
    del old
    before = torch.cuda.memory_reserved()
    poison_free_memory()
    assert torch.cuda.memory_reserved() == before
    sizes = (30 * MIB, 9 * MIB, 8 * MIB, 600)
    pieces = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes]
    assert all((piece == 0xFF).all() for piece in pieces)
