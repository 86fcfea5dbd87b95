"""The memory of the simulated device: one sparse file that each process maps for its own use.

Device addresses lie in a range that no process uses for anything else. The device maps the file at
these addresses. The judge maps it anywhere. The worker reserves the range without access rights, so
host code that touches device memory faults, as on a real GPU.
"""

from __future__ import annotations

import bisect
import ctypes
import mmap
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

ARENA_BASE = 0x2000_0000_0000
ARENA_SIZE = 64 << 30
ALIGNMENT = 256
PARTS = 8
"""Parts of the range of addresses, see `SimArena.rewind`."""
FREED_TOGETHER = 1 << 20
"""Bytes of freed pages that go back to the host by one call, in an arena that reuses addresses."""
GUARD = 4096
"""Bytes between two allocations. An access there is out of bounds of both."""

HOST_LINK = 55e9
"""Bytes/s of a host-device copy (PCIe 5 x16, achievable; assumed)."""
POISON = 0xFF
"""Every byte of fresh memory: NaN in every float format, -1 in every integer one."""
HOST_COPY_LATENCY = 10e-6
"""Seconds that each host-device copy takes besides (assumed)."""

_PROT_NONE, _PROT_READ, _PROT_WRITE = 0, 1, 2
_MAP_SHARED, _MAP_PRIVATE, _MAP_ANONYMOUS = 0x01, 0x02, 0x20
_MAP_NORESERVE, _MAP_FIXED_NOREPLACE = 0x4000, 0x100000
_MADV_REMOVE = 9
_PAGE = mmap.PAGESIZE

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class DeviceMemoryError(MemoryError):
    """The device has not enough memory for an allocation."""


def create_file() -> int:
    """Creates a sparse anonymous file for the memory of one device. Returns its descriptor."""
    fd = os.memfd_create("kernel-gym-device")
    os.ftruncate(fd, ARENA_SIZE)
    return fd


def map_device(fd: int) -> None:
    """Maps the memory at its device addresses, in the device process.

    Raises:
        OSError: The address range is in use.
    """
    _map(_PROT_READ | _PROT_WRITE, _MAP_SHARED | _MAP_NORESERVE, fd)


def reserve_range() -> None:
    """Reserves the device's addresses without access rights, in the worker."""
    _map(_PROT_NONE, _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_NORESERVE, -1)


def _map(protection: int, flags: int, fd: int) -> None:
    mapped = _libc.mmap(ARENA_BASE, ARENA_SIZE, protection, flags | _MAP_FIXED_NOREPLACE, fd, 0)
    if mapped != ARENA_BASE:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot map the device's memory: {os.strerror(error)}")


def device_tensor(
    address: int, shape: list[int], strides: list[int], dtype: torch.dtype
) -> torch.Tensor:
    """Returns a CPU tensor over device memory, in a process that maps it at device addresses."""
    import torch  # HIP programs have no tensors and start without it

    count = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if n > 0)
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    buffer = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return torch.frombuffer(buffer, dtype=dtype, count=count).as_strided(shape, strides)


@dataclass(frozen=True)
class Allocation:
    """A live piece of device memory."""

    start: int
    size: int
    label: str

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.start + self.size


def _pages(start: int, size: int) -> tuple[int, int]:
    """Returns the bounds of the pages of an allocation. No two allocations share a page."""
    return start // _PAGE * _PAGE, -(-(start + size) // _PAGE) * _PAGE


class SimArena:
    """Allocates device memory. Addresses only grow, so a pointer to freed memory stays invalid.

    Args:
        capacity: The most bytes that may be allocated at one time, counted in whole pages.
        reuse: Whether addresses are used again after the last one, for programs that run long.
    """

    def __init__(self, capacity: int, reuse: bool = False) -> None:
        self.capacity = capacity
        self._reuse = reuse
        self.live = 0
        self._next = ARENA_BASE + GUARD
        self._starts: list[int] = []
        self._by_start: dict[int, Allocation] = {}
        self._freed = (0, 0)  # pages that the host still holds; nothing live is among them

    def allocate(self, size: int, label: str) -> Allocation:
        """Allocates `size` bytes at an aligned address.

        Raises:
            DeviceMemoryError: The capacity or the address range is exceeded.
        """
        start = self._place(size)
        first, last = _pages(start or 0, size)
        full = self.live + last - first > self.capacity
        if size < 0 or full or start is None:
            raise DeviceMemoryError(
                f"out of device memory: {size} bytes asked for, {self.live} of {self.capacity} live"
            )
        if first < self._freed[1] and last > self._freed[0]:
            self._give_back()
        allocation = Allocation(start, size, label)
        self._next = start + size + GUARD
        self.live += last - first
        bisect.insort(self._starts, start)
        self._by_start[start] = allocation
        return allocation

    def _place(self, size: int) -> int | None:
        """The next address with room for `size` bytes before a live allocation; None without."""
        for start in (self._next, ARENA_BASE + GUARD)[: 1 + self._reuse]:
            index = bisect.bisect_left(self._starts, start)
            while True:
                start = -(-start // ALIGNMENT) * ALIGNMENT
                last = index == len(self._starts)
                limit = ARENA_BASE + ARENA_SIZE if last else self._starts[index] - GUARD
                if start + size <= limit:
                    return start
                if last:
                    break
                start, index = self._by_start[self._starts[index]].end + GUARD, index + 1
        return None

    def rewind(self) -> None:
        """Begins again at the start of the first part of the range in which nothing is live.

        Modelled times depend on addresses, but not on the part. After it, those of a call do not
        depend on the calls before it, of which outputs may still be live.
        """
        size = ARENA_SIZE // PARTS
        used = {(a.start - ARENA_BASE) // size for a in self}
        free = [part for part in range(PARTS) if part not in used]
        if free:
            self._next = ARENA_BASE + free[0] * size + GUARD

    def free(self, start: int) -> bool:
        """Frees the allocation at `start` and its pages. Returns False if there is none."""
        allocation = self._by_start.pop(start, None)
        if allocation is None:
            return False
        del self._starts[bisect.bisect_left(self._starts, start)]
        first, last = _pages(allocation.start, allocation.size)
        self.live -= last - first
        if last > first:
            self._keep_freed(first, last)
        return True

    def _keep_freed(self, first: int, last: int) -> None:
        """Notes freed pages. A call to the host for each small tensor would cost more than it."""
        before = self._freed
        start, end = (min(first, before[0]), max(last, before[1])) if before[1] else (first, last)
        none_live = bisect.bisect_left(self._starts, start) == bisect.bisect_left(self._starts, end)
        if self._reuse and none_live and end - start <= FREED_TOGETHER:
            self._freed = start, end
            return
        self._give_back()
        self._freed = first, last
        if not self._reuse or last - first > FREED_TOGETHER:
            self._give_back()

    def _give_back(self) -> None:
        (first, last), self._freed = self._freed, (0, 0)
        if last:
            _libc.madvise(first, last - first, _MADV_REMOVE)

    def locate(self, address: int, size: int) -> Allocation | None:
        """Returns the live allocation that contains `[address, address + size)`, or None."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        allocation = self._by_start[self._starts[index]]
        return allocation if address + size <= allocation.end else None

    def __iter__(self):
        return iter(self._by_start.values())
