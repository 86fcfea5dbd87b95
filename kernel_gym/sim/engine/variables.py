"""The variables of all loaded modules in the memory of a simulated GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernel_gym.sim.asm.data import DataObject, Storage, check_room


class DeviceVariables:
    """Device variables by the code of their module.

    Attributes:
        limit: Maximum bytes of the variables of all modules together.
        place: Allocates bytes for the variables of a module; None: in this process's own memory.
    """

    def __init__(self) -> None:
        self.limit = 4 << 30
        self.place: Callable[[int], int] | None = None
        self._storages: dict[bytes, Storage] = {}

    def __contains__(self, code: bytes) -> bool:
        return code in self._storages

    def __getitem__(self, code: bytes) -> Storage:
        return self._storages[code]

    def add(self, code: bytes, data: Mapping[str, DataObject]) -> None:
        """Allocates the variables of a module.

        Raises:
            AsmError: If they do not fit beside those of the others.
        """
        check_room(data, self._storages.values(), self.limit)
        self._storages[code] = Storage(data, self.place)

    def regions(self) -> list[tuple[int, int]]:
        """Address and bytes of the variables of each module that has some."""
        return [(s.start, s.size) for s in self._storages.values() if s.size]

    def region_of(self, code: bytes) -> tuple[int, int]:
        """Address and bytes of all variables of a loaded module; zeros if it has none."""
        storage = self._storages.get(code)
        return (0, 0) if storage is None or not storage.size else (storage.start, storage.size)

    def hold(self, address: int, size: int) -> bool:
        """Whether a range lies within the variables of one module."""
        ranges = ((s.start, s.start + s.size) for s in self._storages.values())
        return any(start <= address and address + size <= end for start, end in ranges)
