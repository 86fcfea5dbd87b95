"""The simulated device's allocator."""

import contextlib
import ctypes
import mmap
import os
import random
import subprocess
import sys
from types import SimpleNamespace

import pytest

from kernel_gym.devices.sim.memory import (
    ALIGNMENT,
    ARENA_BASE,
    ARENA_SIZE,
    GUARD,
    DeviceMemoryError,
    SimArena,
    create_file,
    map_device,
)

PAGE = mmap.PAGESIZE


@pytest.fixture
def device():
    """The device's memory, mapped at its addresses; the descriptor of its file."""
    file = create_file()
    map_device(file)
    yield file
    ctypes.CDLL(None).munmap(ctypes.c_void_p(ARENA_BASE), ctypes.c_size_t(ARENA_SIZE))
    os.close(file)


def test_allocations_are_aligned_apart_and_never_reused():
    arena = SimArena(1 << 30)
    first = arena.allocate(100, "a")
    second = arena.allocate(100, "b")
    assert first.start % ALIGNMENT == second.start % ALIGNMENT == 0
    assert second.start - first.end >= GUARD
    arena.free(second.start)
    assert arena.allocate(100, "c").start > second.start


def test_a_range_is_located_only_when_it_lies_whole_in_a_live_allocation():
    arena = SimArena(1 << 30)
    result = arena.allocate(1000, "a")
    assert arena.locate(result.start, 1000) == result
    assert arena.locate(result.start + 999, 1) == result
    assert arena.locate(result.start + 1, 1000) is None
    assert arena.locate(result.start - 1, 1) is None
    assert arena.locate(result.end, 0) == result
    arena.free(result.start)
    assert arena.locate(result.start, 1) is None


def test_the_capacity_is_of_live_pages(device):
    arena = SimArena(8 * PAGE)
    first = arena.allocate(6 * PAGE, "a")
    with pytest.raises(DeviceMemoryError, match=f"of {8 * PAGE} live"):
        arena.allocate(6 * PAGE, "b")
    arena.free(first.start)
    assert arena.allocate(6 * PAGE, "b").size == 6 * PAGE


def test_small_allocations_cost_the_pages_that_they_touch(device):
    arena, memory = SimArena(64 * PAGE), os.fstat(device)
    starts = []
    with contextlib.suppress(DeviceMemoryError):
        for _ in range(1000):
            starts.append(arena.allocate(1, "small").start)
            ctypes.memset(starts[-1], 1, 1)
    assert 32 <= len(starts) <= 64
    assert os.fstat(device).st_blocks * 512 <= memory.st_blocks * 512 + 64 * PAGE
    for start in starts:
        arena.free(start)
    assert arena.live == 0
    assert os.fstat(device).st_blocks == 0


def test_freeing_twice_is_told_not_raised():
    arena = SimArena(1 << 20)
    result = arena.allocate(10, "a")
    assert arena.free(result.start)
    assert not arena.free(result.start)


def test_host_code_that_touches_reserved_device_memory_faults():
    code = (
        "import ctypes\n"
        "from kernel_gym.devices.sim.memory import ARENA_BASE, reserve_range\n"
        "reserve_range()\n"
        "ctypes.string_at(ARENA_BASE + 4096, 1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == -11, ARENA_BASE


def test_freed_pages_go_back_together_and_never_those_of_a_live_allocation(monkeypatch):
    monkeypatch.setattr("kernel_gym.devices.sim.memory.ARENA_SIZE", 64 * PAGE)
    monkeypatch.setattr("kernel_gym.devices.sim.memory.FREED_TOGETHER", 8 * PAGE)
    arena, draws, given_back, freed = SimArena(1 << 30, reuse=True), random.Random(7), [], 0

    def madvise(first, size, advice):
        assert all(a.end <= first or first + size <= a.start for a in arena)
        given_back.append((first, size))

    monkeypatch.setattr("kernel_gym.devices.sim.memory._libc", SimpleNamespace(madvise=madvise))
    for _ in range(3000):
        live = [piece.start for piece in arena]
        if len(live) > 12 or (live and draws.random() < 0.5):
            arena.free(draws.choice(live))
            freed += 1
        else:
            arena.allocate(draws.choice((1, 300, 2 * PAGE)), "x")
    assert len(given_back) < freed
    assert all(size <= 8 * PAGE for _, size in given_back)
    given_back.clear()
    for piece in list(arena):
        arena.free(piece.start)
    for _ in range(40):
        arena.free(arena.allocate(1, "x").start)
    assert len(given_back) < 20


def test_addresses_start_again_only_where_that_is_asked_for(monkeypatch):
    monkeypatch.setattr("kernel_gym.devices.sim.memory.ARENA_SIZE", 16 * PAGE)
    strict, reusing = SimArena(1 << 30), SimArena(1 << 30, reuse=True)
    for arena in (strict, reusing):
        pieces = [arena.allocate(2 * PAGE, name) for name in "abcde"]
        arena.free(pieces[1].start)
        arena.free(pieces[2].start)
    with pytest.raises(DeviceMemoryError):
        strict.allocate(2 * PAGE, "f")
    again = [reusing.allocate(2 * PAGE, name) for name in "fg"]
    assert [piece.start for piece in again] == [pieces[1].start, pieces[2].start]
    assert [piece.label for piece in reusing] == list("adefg")
    assert reusing.locate(again[0].start, 1) == again[0]
    with pytest.raises(DeviceMemoryError):
        reusing.allocate(2 * PAGE, "h")
