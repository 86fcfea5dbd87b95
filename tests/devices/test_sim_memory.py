"""The simulated device's allocator."""

import subprocess
import sys

import pytest

from kernel_gym.devices.sim_memory import ALIGNMENT, ARENA_BASE, GUARD, Arena, DeviceMemoryError


def test_allocations_are_aligned_apart_and_never_reused():
    arena = Arena(1 << 30)
    first = arena.allocate(100, "a")
    second = arena.allocate(100, "b")
    assert first.start % ALIGNMENT == second.start % ALIGNMENT == 0
    assert second.start - first.end >= GUARD
    arena.free(second.start)
    assert arena.allocate(100, "c").start > second.start


def test_a_range_is_located_only_when_it_lies_whole_in_a_live_allocation():
    arena = Arena(1 << 30)
    found = arena.allocate(1000, "a")
    assert arena.locate(found.start, 1000) == found
    assert arena.locate(found.start + 999, 1) == found
    assert arena.locate(found.start + 1, 1000) is None
    assert arena.locate(found.start - 1, 1) is None
    assert arena.locate(found.end, 0) == found
    arena.free(found.start)
    assert arena.locate(found.start, 1) is None


def test_the_capacity_is_of_live_bytes():
    arena = Arena(1000)
    first = arena.allocate(600, "a")
    with pytest.raises(DeviceMemoryError, match="600 of 1000"):
        arena.allocate(600, "b")
    arena.free(first.start)
    assert arena.allocate(600, "b").size == 600


def test_freeing_twice_is_told_not_raised():
    arena = Arena(1000)
    found = arena.allocate(10, "a")
    assert arena.free(found.start)
    assert not arena.free(found.start)


def test_host_code_that_touches_reserved_device_memory_faults():
    code = (
        "import ctypes\n"
        "from kernel_gym.devices.sim_memory import ARENA_BASE, reserve_range\n"
        "reserve_range()\n"
        "ctypes.string_at(ARENA_BASE + 4096, 1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == -11, ARENA_BASE
