"""The worker's allocations: what it frees, and what the judge frees."""

import pytest

from kernel_gym.worker.sim.runtime import SimRuntime

ADDRESS = 0x2000_0000_1000


class Recording(SimRuntime):
    """Keeps the frees that would be sent to the device."""

    def __init__(self):
        super().__init__()
        self.freed, self.gone = [], []
        self.released = self._take

    def _take(self):
        taken, self.gone = self.gone, []
        return taken

    def _allocate(self, size):
        return ADDRESS

    def _free(self, address):
        self.freed.append(address)

    def download(self, address, size):
        raise NotImplementedError

    def clock(self):
        raise NotImplementedError

    def _ask(self, request):
        raise NotImplementedError


@pytest.fixture
def runtime():
    return Recording()


def test_memory_of_the_judge_is_not_freed(runtime):
    runtime.adopt(ADDRESS)
    assert runtime.allocate(256) == ADDRESS
    runtime.gone = [ADDRESS]
    runtime.free_released()
    assert runtime.freed == []


def test_an_address_that_was_adopted_in_two_calls_is_not_freed(runtime):
    for _ in range(2):  # the tensor of the first call lives on
        runtime.adopt(ADDRESS)
        runtime.allocate(256)
    runtime.gone = [ADDRESS, ADDRESS]
    runtime.free_released()
    assert runtime.freed == []


def test_own_memory_at_an_address_that_was_adopted_before_is_freed(runtime):
    runtime.adopt(ADDRESS)
    runtime.allocate(256)
    runtime.gone = [ADDRESS]
    runtime.allocate(256)
    runtime.gone = [ADDRESS]
    runtime.free_released()
    assert runtime.freed == [ADDRESS]
