"""The memory of a GPU: who gives back, and who is to blame when there is none."""

from types import SimpleNamespace

import pytest
import torch

from kernel_gym.devices.base import DeviceLostError, Exclusivity, InfraError, MemoryUsedUpError
from kernel_gym.devices.gpu.device import HELD_BYTES, RESERVED_BYTES, GpuDevice
from kernel_gym.devices.gpu.lock import GpuLock
from kernel_gym.devices.gpu.runtime import give_back

TOTAL = 100 << 30


class Memory:
    """Memory of a GPU and of this process, in GiB."""

    def __init__(self, monkeypatch, free, held):
        self.free, self.held, self.asked = free, held, 0
        monkeypatch.setattr(torch.cuda, "mem_get_info", self.info)
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: (self.held + 3) << 30)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 3 << 30)
        monkeypatch.setattr(torch.cuda, "empty_cache", self.empty)
        monkeypatch.setattr(torch.cuda, "set_device", lambda index: None)

    def info(self):
        self.asked += 1
        return self.free << 30, TOTAL

    def empty(self):
        self.free, self.held = self.free + self.held, 0


class Candidate:
    """A session whose worker holds some GiB."""

    def __init__(self, memory, holds):
        self.memory, self.holds = memory, holds

    def evict(self):
        self.memory.free, self.holds, freed = self.memory.free + self.holds, 0, self.holds
        return freed << 30


@pytest.fixture
def device(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    result = GpuDevice.__new__(GpuDevice)
    result.index, result.lock, result._candidate = 0, GpuLock("GPU-1"), None
    return result


@pytest.mark.parametrize(
    ("held", "free", "least", "left"),
    [
        (9, 90, None, 0),
        (9, 90, HELD_BYTES, 0),
        (6, 90, HELD_BYTES, 6),
        (6, 20, HELD_BYTES, 0),
        (6, 20, None, 6),
        (2, 20, HELD_BYTES, 2),
    ],
    ids=["much", "much by any rule", "room", "crowded", "not asked for crowds", "little"],
)
def test_a_process_keeps_no_more_memory_than_leaves_room_for_others(
    monkeypatch, held, free, least, left
):
    memory = Memory(monkeypatch, free, held)
    give_back(least)
    assert memory.held == left


def test_who_holds_little_does_not_ask_the_driver(monkeypatch):
    memory = Memory(monkeypatch, 90, 2)
    give_back(HELD_BYTES)
    assert memory.asked == 0


@pytest.mark.parametrize(
    "raised", [torch.OutOfMemoryError("CUDA out of memory"), MemoryUsedUpError("for a baseline")]
)
@pytest.mark.parametrize(("holds", "error"), [(3, InfraError), (40, DeviceLostError)])
def test_memory_that_ours_did_not_get_is_blamed_on_a_candidate_that_held_it(
    monkeypatch, device, raised, holds, error
):
    memory = Memory(monkeypatch, 1, 20)
    device._candidate = candidate = Candidate(memory, holds)
    with pytest.raises(InfraError) as result, device.held(Exclusivity.ALONE):
        raise raised
    assert type(result.value) is error
    assert (f"the candidate held {holds << 10} MiB" in str(result.value)) is (holds == 40)
    assert candidate.holds == 0
    assert memory.free == 1 + holds + 20


def test_what_a_judge_asks_ahead_is_kept_on_a_small_gpu_too(monkeypatch):
    memory = Memory(monkeypatch, 90, RESERVED_BYTES >> 30)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (12 << 30, 24 << 30))
    give_back(HELD_BYTES)
    assert memory.held == RESERVED_BYTES >> 30


def test_before_there_is_a_candidate_others_have_the_memory(monkeypatch, device):
    Memory(monkeypatch, 1, 0)
    for exclusivity in Exclusivity:
        with (
            pytest.raises(InfraError, match="run fewer evaluators") as result,
            device.held(exclusivity),
        ):
            raise torch.OutOfMemoryError("CUDA out of memory")
        assert type(result.value) is InfraError


def test_a_turn_that_ends_well_gives_back_too(monkeypatch, device):
    memory = Memory(monkeypatch, 90, 30)
    with device.held(Exclusivity.ALONE):
        device._candidate = SimpleNamespace()
    assert memory.held == 0
