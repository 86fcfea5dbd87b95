"""The reward function for trainers of TRL, and the dataset that goes with it."""

import pytest

from kernel_gym.envs.adapters.trl_reward import KernelReward, rows
from kernel_gym.executors import make_executor
from kernel_gym.tasks import get_task

TASKS = ["triton2triton/softmax", "torch2triton/gelu"]


@pytest.fixture(scope="module")
def executor():
    with make_executor("local", device="sim:gfx942", seed=0, workers=2) as executor:
        yield executor


def test_a_batch_is_scored_each_by_its_own_task(executor):
    good = get_task(TASKS[0]).start_source
    completions = [
        f"So:\n```python\n{good}```\n",
        [{"role": "assistant", "content": good}],
        "not a kernel",
        [{"role": "assistant", "content": None}],
    ]
    tasks = [TASKS[0], TASKS[0], TASKS[0], TASKS[1]]
    rewards = KernelReward(executor)(completions=completions, task=tasks, prompts=[], other=1)
    assert rewards == [pytest.approx(0.15, abs=0.02)] * 2 + [0.02, rewards[3]]
    assert rewards[3] < 0.1


def test_a_fault_of_the_machine_is_left_out(executor):
    reward = KernelReward(executor, reward=lambda evaluation: float("nan"))
    assert reward(completions=["x"], task=TASKS[:1]) == [None]


def test_rows_have_the_prompt_and_the_task():
    data = rows(TASKS, "sim:gfx942")
    assert [row["task"] for row in data] == TASKS
    assert "softmax" in data[0]["prompt"][0]["content"]
