"""Memory of a device for one plan at a time, so that plans in turn have the same addresses."""

from __future__ import annotations

from kernel_gym.launcher.driver import GpuDriver

MAX_UNUSED_BYTES = 256 << 20
"""Most bytes that stay allocated beside those that a plan needs."""


class DeviceMemory:
    """One piece of memory that stays allocated from one plan to the next.

    What it holds is old: a plan poisons its part before each call.

    Args:
        driver: The device.
    """

    def __init__(self, driver: GpuDriver) -> None:
        self._driver = driver
        self._address, self._size = 0, 0

    def take(self, size: int) -> int:
        """Returns the address of memory with at least so many bytes, in place of what it had.

        Raises:
            DriverError: The device has too little memory.
        """
        if not size <= self._size <= size + MAX_UNUSED_BYTES:
            self.free()
            self._address = self._driver.allocate(size)
            self._size = size
        return self._address

    def free(self) -> None:
        """Frees the memory."""
        if self._address:
            self._driver.free(self._address)
        self._address, self._size = 0, 0
