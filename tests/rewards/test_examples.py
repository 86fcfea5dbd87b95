"""`kernel-opt` on real kernels: kernels for the train shapes against general kernels."""

from pathlib import Path

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Outcome
from kernel_gym.rewards import get_reward
from kernel_gym.tasks import Split, get_task

CANDIDATES = Path(__file__).parents[2] / "examples" / "candidates"
RIGHT_BUT_SLOW = ("triton2triton/softmax", "torch2triton/swiglu")
WRONG_ELSEWHERE = ("torch2triton/add_rms_norm",)


@pytest.fixture(scope="module")
def evaluate():
    with Evaluator(device="sim:gfx942", seed=0) as evaluator:

        def evaluate(task_id, stem):
            source = (CANDIDATES / task_id / f"{stem}.py").read_text()
            return evaluator.evaluate(get_task(task_id), source)

        yield evaluate


@pytest.mark.parametrize("task_id", RIGHT_BUT_SLOW + WRONG_ELSEWHERE)
def test_a_kernel_for_the_shapes_shown_earns_less_than_two_fifths_of_one_for_all(evaluate, task_id):
    bound, good = evaluate(task_id, "2_shape_bound"), evaluate(task_id, "3_good")
    assert all(result.passed for result in bound.by_split(Split.TRAIN))
    assert good.outcome is Outcome.PASSED
    if task_id in RIGHT_BUT_SLOW:
        assert bound.outcome is Outcome.PASSED
        assert bound.speedup == pytest.approx(good.speedup, rel=0.1)
    reward = get_reward("kernel-opt")
    assert reward(bound).value < 0.4 * reward(good).value
    assert reward(good).value > 0.35
