"""A third backend is one folder and one entry in the registry: nothing else knows of it."""

import pytest

from kernel_gym.devices import (
    UnknownDevice,
    describe,
    device_names,
    device_statuses,
    register_backend,
    require_device,
    resolve,
    unregister_backend,
)
from kernel_gym.episodes.conversation import full_prompt
from kernel_gym.episodes.edits import SIMULATED, space_of
from kernel_gym.evaluator import Evaluator
from kernel_gym.executors import make_executor
from kernel_gym.executors.make import default_workers
from kernel_gym.records import Outcome, Stage
from kernel_gym.tasks import get_task
from tests.devices.toy import CANDIDATE_SECONDS, TRUSTED_SECONDS, ToyBackend

SOFTMAX = get_task("triton2triton/softmax")
RIGHT = "def softmax(x):\n    return torch.softmax(x.float(), 1).to(x.dtype)\n"
WRONG = "def softmax(x):\n    return torch.zeros_like(x)\n"


@pytest.fixture(autouse=True)
def toy():
    register_backend(ToyBackend())
    yield
    unregister_backend("toy")


@pytest.mark.parametrize(
    ("source", "outcome", "stage"),
    [
        (RIGHT, Outcome.PASSED, Stage.DONE),
        (WRONG, Outcome.WRONG_VALUES, Stage.TRAIN),
        ("def soft(x): return x", Outcome.COMPILE_ERROR, Stage.BUILD),
    ],
)
def test_candidates_are_evaluated_end_to_end(source, outcome, stage):
    with Evaluator("toy:0", seed=0) as evaluator:
        evaluation = evaluator.evaluate(SOFTMAX, source)
    assert (evaluation.outcome, evaluation.stage) == (outcome, stage), evaluation.message
    assert evaluation.device == "toy:0"
    if outcome is Outcome.PASSED:
        assert evaluation.speedup == pytest.approx(TRUSTED_SECONDS / CANDIDATE_SECONDS)


def test_a_pool_evaluates_on_it():
    with make_executor("local", device="toy:0", workers=default_workers("toy:0")) as pool:
        assert pool.submit(SOFTMAX.id, RIGHT).result().outcome is Outcome.PASSED


def test_names_prompts_and_statuses_know_it():
    require_device("toy:7")
    assert resolve("toy:0") in device_names()
    with pytest.raises(UnknownDevice, match="toy:0"):
        resolve("toy:7")
    assert "toy:0" in {status.name for status in device_statuses()}
    assert "A toy." in full_prompt("toy:0")(SOFTMAX)
    assert space_of("toy:0") is SIMULATED


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="registered"):
        register_backend(ToyBackend())


def test_it_is_gone_when_it_is_unregistered():
    unregister_backend("toy")
    with pytest.raises(UnknownDevice):
        describe("toy:0")
    register_backend(ToyBackend())
