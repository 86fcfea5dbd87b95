"""Evaluators over the GPUs of one machine, on backends that only tell names."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from kernel_gym.devices import register_backend, unregister_backend
from kernel_gym.executors import local
from kernel_gym.executors.local import LocalExecutor
from kernel_gym.executors.process import _line
from kernel_gym.executors.spread import devices_for
from tests.devices.toy import ToyBackend


class Cards(ToyBackend):
    """Four cards of one model and one of another, with two evaluators each."""

    name, pattern, fixed_names, threads = "cards", r"card:\d", (), False

    def present(self):
        return tuple(f"card:{number}" for number in range(5))

    def describe(self, name):
        description = super().describe(name)
        return replace(description, hardware="Other") if name == "card:4" else description

    def default_workers(self, name, cpus):
        return 2


@pytest.fixture(autouse=True)
def cards():
    register_backend(Cards())
    yield
    unregister_backend("cards")


def test_a_pool_that_fits_a_gpu_stays_on_it():
    assert devices_for("card:1", 2) == ("card:1",)


def test_a_larger_pool_uses_all_gpus_of_the_model_the_named_one_first():
    assert devices_for("card:1", 3) == ("card:1", "card:0", "card:2", "card:3")
    assert devices_for("card:4", 3) == ("card:4",)


def test_the_simulator_is_one_device():
    assert devices_for("sim:gfx942", 64) == ("sim:gfx942",)


def test_workers_are_even_and_a_lost_one_is_replaced_on_its_gpu(monkeypatch):
    monkeypatch.setattr(
        local,
        "ProcessWorker",
        lambda place, secret, named: SimpleNamespace(place=place, named=named, alive=True),
    )
    with LocalExecutor("card:0", workers=8) as executor:
        made = [executor._make_worker() for _ in range(8)]
        places = [worker.place for worker in made]
        assert sorted(places) == [f"card:{n}" for n in (0, 0, 1, 1, 2, 2, 3, 3)]
        assert {worker.named for worker in made} == {"card:0"}
        made[5].alive = False
        assert executor._make_worker().place == made[5].place


def test_a_full_gpu_is_one_line():
    text = _line("card:2", torch.OutOfMemoryError("CUDA out of memory\nTried to allocate"))
    assert text == "card:2 is full: give fewer --workers, or end what else runs on it"
