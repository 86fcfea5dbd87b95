"""Memory of one plan after another: reused if it fits, freed if it is too large."""

from kernel_gym.launcher.device_memory import MAX_UNUSED_BYTES, DeviceMemory


class Driver:
    def __init__(self):
        self.held = {}

    def allocate(self, size):
        address = 4096 * (1 + len(self.held))
        self.held[address] = size
        return address

    def free(self, address):
        del self.held[address]


def test_memory_is_kept_while_plans_fit_and_little_is_unused():
    driver = Driver()
    memory = DeviceMemory(driver)
    first = memory.take(1 << 20)
    assert memory.take(1000) == first
    assert list(driver.held.values()) == [1 << 20]
    memory.take(2 << 20)
    assert list(driver.held.values()) == [2 << 20]
    memory.take(MAX_UNUSED_BYTES + (4 << 20))
    memory.take(1 << 20)
    assert list(driver.held.values()) == [1 << 20]
    memory.free()
    memory.free()
    assert not driver.held
