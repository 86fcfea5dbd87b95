"""Copies of the live memory of a simulated GPU, in the process that maps it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

Region = tuple[int, int]
"""An address of device memory, and a number of bytes."""

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]


class KeptMemory:
    """A copy of regions of device memory."""

    def __init__(self, regions: Iterable[Region]) -> None:
        self._copies: dict[Region, bytes] = {}
        self.keep(regions)

    def keep(self, regions: Iterable[Region]) -> None:
        """Copies the regions that are not kept yet."""
        for region in regions:
            if region not in self._copies:
                self._copies[region] = ctypes.string_at(*region)

    def has(self, region: Region) -> bool:
        """Whether there is a copy of a region."""
        return region in self._copies

    def restore(self, regions: Iterable[Region]) -> None:
        """Writes the copies of these regions back, as far as there are any."""
        for region in regions:
            if region in self._copies:
                ctypes.memmove(region[0], self._copies[region], region[1])

    def changed(self, regions: Iterable[Region]) -> list[Region]:
        """Returns those of the regions whose content is another one than that of their copy."""
        return [r for r in regions if self.has(r) and _memcmp(r[0], self._copies[r], r[1])]
